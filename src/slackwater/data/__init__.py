"""Files of examples: from svmlight text and NumPy archives to rows and labels, and back."""

from slackwater.data.errors import DataFileError, MissingDataFile
from slackwater.data.svmlight import read_svmlight
from slackwater.data.table import Table

__all__ = ["DataFileError", "MissingDataFile", "Table", "read_svmlight"]
