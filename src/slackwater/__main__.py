"""``python -m slackwater`` is the ``slackwater`` command."""

import sys

from slackwater.cli import main

if __name__ == "__main__":
    sys.exit(main())
