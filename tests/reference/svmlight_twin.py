"""svmlight text read line by line in plain Python."""


def svmlight_twin(text, base="auto"):
    """Return labels as written, query ids or None, and one dict of column -> value per example."""
    labels, queries, examples = [], [], []
    for line in text.split("\n"):
        words = line.split("#")[0].split()
        if not words:
            continue
        labels.append(words.pop(0))
        if words and words[0].startswith("qid:"):
            queries.append(int(words.pop(0)[4:]))
        pairs = [word.split(":") for word in words]
        examples.append({int(column): float(value) for column, value in pairs})
    if base == "auto":
        base = 0 if any(0 in example for example in examples) else 1
    examples = [{column - base: value for column, value in sorted(example.items())} for example in examples]
    return labels, queries or None, examples
