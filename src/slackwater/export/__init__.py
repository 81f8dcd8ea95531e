"""Models for other homes: C99, ONNX, JSON, LIBSVM's and LIBLINEAR's text; and models that come from there.

This package has the name of its main function, ``slackwater.export(model, path)``, and can be called like it.
"""

from slackwater.callable_package import answer_calls
from slackwater.export.json_file import from_json
from slackwater.export.liblinear import from_liblinear
from slackwater.export.libsvm import from_libsvm
from slackwater.export.plain import ExportError
from slackwater.export.writing import FORMATS, Exported, export, import_model, kind_of

__all__ = [
    "FORMATS",
    "ExportError",
    "Exported",
    "export",
    "from_json",
    "from_liblinear",
    "from_libsvm",
    "import_model",
    "kind_of",
]


answer_calls(__name__, "slackwater.export.writing", "export")
