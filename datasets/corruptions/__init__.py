"""Common corruptions of small images (Hendrycks and Dietterich 2019): a generator, and the published arrays."""

from .cache import NotStored
from .generator import CORRUPTIONS, GROWING, SEVERITIES, VERSION, corrupt
from .source import corrupted

__all__ = ["CORRUPTIONS", "GROWING", "SEVERITIES", "VERSION", "NotStored", "corrupt", "corrupted"]
