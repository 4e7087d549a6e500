"""
The umbrella merge, as values: from a library and a model's answers to actions that lose nothing.

`candidates` says who may be asked about, `cards` and `survey` and `question` make what a model is shown, `draft` turns
its reply into a `Decision` or into every reason why not, `fold` writes the umbrella's package, `build` makes the action
with its proof (`coverage`, `links`). `lexical` decides without a model. Nothing here does I/O.
"""
