"""Models for other homes: C99, ONNX, JSON, LIBSVM's and LIBLINEAR's text."""
