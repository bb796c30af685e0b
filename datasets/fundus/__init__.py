"""Graded fundus photographs: EyePACS, APTOS 2019 and IDRiD, from a user's copy, never downloaded here."""

FINDINGS = {"moderate": 2, "mild": 1}
"""Lowest grade of each finding: 2, retinopathy that threatens sight; 1, any retinopathy."""
