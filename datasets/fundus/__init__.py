"""Graded fundus photographs: EyePACS, APTOS 2019 and IDRiD, from a user's copy, never downloaded here."""
