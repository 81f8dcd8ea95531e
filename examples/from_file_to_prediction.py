"""From a file to a certified model to predictions: write, read, train, save, load, predict."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from slackwater import LinearSVC, load, read, save
from slackwater.data import write_svmlight

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
words = np.array(["malignant", "benign"])[y]

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    write_svmlight(folder / "tumours.svm.gz", X, words)

    table = read(folder / "tumours.svm.gz")
    svm = LinearSVC(C=0.1, tol=1e-3, random_state=0).fit(table.X, table.y)
    print(svm.certificate_)
    print(svm.status_)

    save(svm.model_, folder / "tumours.model")
    model = load(folder / "tumours.model")
    predicted = model.predict(table.X)

print(f"{np.mean(predicted != words):.2%} of the labels are wrong, by {model.meta['solver']}")
