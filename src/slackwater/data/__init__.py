"""Files of examples: svmlight text and NumPy archives to rows and labels, and back."""

from slackwater.data.errors import DataFileError, MissingDataFile
from slackwater.data.files import named_set, read, write
from slackwater.data.labels import LabelMap
from slackwater.data.npz import read_npz, write_npz
from slackwater.data.svmlight import read_svmlight
from slackwater.data.svmlight_writing import write_svmlight
from slackwater.data.table import Table

__all__ = [
    "DataFileError",
    "LabelMap",
    "MissingDataFile",
    "Table",
    "named_set",
    "read",
    "read_npz",
    "read_svmlight",
    "write",
    "write_npz",
    "write_svmlight",
]
