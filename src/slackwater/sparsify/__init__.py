"""From a dense kernel predictor to a small one: published algorithms, one per file, and the driver that runs them.

The package has the name of a public function, ``slackwater.sparsify(model, X, y)``, and can be called like it.
"""

from slackwater.callable_package import answer_calls

answer_calls(__name__, "slackwater.estimators", "sparsify")
