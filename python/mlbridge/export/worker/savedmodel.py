# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts a SavedModel to ONNX, and runs it, in a Python that has TensorFlow.

``python savedmodel.py JOB`` runs a job, which is a JSON object with the arguments of
`load`, and with the ``opset`` and the path of the ONNX file (``to``). The program
prints one line of JSON, which describes the model. It then reads requests, one line of
JSON each, and prints the model's outputs. The interpreter needs TensorFlow and
tf2onnx, but no package of this project, and may be older than Python 3.11.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

TIME_STEP: dict[str, float] = {"step_type": 0, "reward": 0, "discount": 0}
"""The inputs of TF-Agents that are not features. LLVM does not send them either."""


class Unfit(Exception):
    """The folder does not contain the requested model, or it cannot be converted."""


def convert(call: Callable[..., Any], signature: Sequence[Any], opset: int) -> Any:
    """Converts a function to ONNX.

    Args:
        call: the function, which returns a dict of tensors.
        signature: a TensorSpec for each parameter.
        opset: the opset of the graph.
    """
    import tensorflow as tf
    import tf2onnx
    from onnx import numpy_helper

    try:
        # Apply Keras's patch to tf2onnx, which fails with current NumPy otherwise.
        from keras.src.export.tf2onnx_lib import patch_tf2onnx
    except ImportError:
        pass
    else:
        patch_tf2onnx()
    function = tf.function(call, input_signature=signature)
    model, _ = tf2onnx.convert.from_function(
        function,
        input_signature=signature,
        opset=opset,
        custom_op_handlers={"Bucketize": (bucketize, [])},
    )
    # Some tensors of layers have become inputs, for example the statistics of
    # Normalization. Add initializers, so that these inputs become constants.
    inputs = {value.name for value in model.graph.input}
    for outside, inside in function.get_concrete_function().graph.captures:
        if inside.name in inputs:
            value = numpy_helper.from_array(outside.numpy(), inside.name)
            model.graph.initializer.append(value)
    return model


def bucketize(context: Any, node: Any, name: str, _: Any) -> None:
    """Converts TensorFlow's operator Bucketize, which tf2onnx does not support.

    The result is the number of boundaries that are not greater than the input.
    """
    import numpy as np
    from onnx import TensorProto

    boundaries = node.get_attr_value("boundaries")
    (given,), (output,) = node.input, node.output
    shape, dtype = context.get_shape(output), context.get_dtype(output)
    context.remove_node(name)

    def constant(suffix: str, values: Any) -> Any:
        return context.make_const(name + suffix, values).output[0]

    def make(operator: str, inputs: Sequence[str], **attributes: Any) -> Any:
        return context.make_node(operator, inputs, attr=attributes).output[0]

    # TensorFlow compares integers with the boundaries as floats.
    is_double = context.get_dtype(given) == TensorProto.DOUBLE
    kind = TensorProto.DOUBLE if is_double else TensorProto.FLOAT
    last = constant("/last", np.array([-1], np.int64))
    limits = np.array(boundaries, np.float64 if is_double else np.float32)
    value = make("Cast", [given], to=kind)
    columns = [make("Unsqueeze", [value, last]), constant("/boundaries", limits)]
    reached = make("GreaterOrEqual", columns)
    counted = make("Cast", [reached], to=TensorProto.INT32)
    context.make_node(
        "ReduceSum",
        [counted, last],
        attr={"keepdims": 0},
        outputs=[output],
        name=name,
        shapes=[shape],
        dtypes=[dtype],
    )


def choose(signatures: Iterable[str], wanted: "str | None") -> str:
    """Returns the name of the signature to convert, or raises Unfit."""
    names = sorted(name for name in signatures if not name.startswith("__"))
    if wanted in names:
        return wanted
    found = ", ".join(names) or "none"
    if wanted:
        raise Unfit(f"expected a signature '{wanted}', found {found}")
    # TF-Agents saves a policy under the name "action".
    defaults = ["serving_default", "action"] + (names if len(names) == 1 else [])
    for name in defaults:
        if name in names:
            return name
    raise Unfit(
        f"expected the signature serving_default or action, found {found}; name one of"
        " them (signature=, --signature)"
    )


def load(
    folder: str, signature: "str | None", constants: Mapping[str, float]
) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """Loads a model.

    Args:
        folder: the folder of the model.
        signature: the name of the signature, or None.
        constants: maps inputs to numbers. These inputs become constants.

    Returns a function of the other inputs, their TensorSpecs, and a description.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    # Load only the graph. Loading the model's Python objects would need the packages
    # that define their types.
    with tf.Graph().as_default() as graph, v1.Session() as session:
        found = v1.saved_model.load(session, ["serve"], folder).signature_def
        chosen = choose(found, signature)
        inputs, outputs = found[chosen].inputs, found[chosen].outputs
        operators = sorted({info.name.split(":")[0] for info in outputs.values()})
        frozen = v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), operators
        )
    specs = {
        name: tf.TensorSpec(
            tf.TensorShape(inputs[name].tensor_shape), tf.as_dtype(inputs[name].dtype)
        )
        for name in sorted(inputs)
    }
    for name in constants:
        if name not in specs:
            known = ", ".join(specs) or "none"
            raise Unfit(f"expected an input '{name}' to replace, found {known}")
    if TIME_STEP.keys() <= specs.keys():
        constants = {**TIME_STEP, **constants}
    free = [name for name in specs if name not in constants]
    if not free:
        raise Unfit(f"the signature '{chosen}' has no inputs that are features")

    def fixed(name: str, batch: Any) -> Any:
        spec = specs[name]
        shape = [batch if extent is None else extent for extent in spec.shape]
        return tf.fill(shape, tf.cast(constants[name], spec.dtype))

    # Freezing removes inputs on which no output depends.
    kept = {node.name for node in frozen.node}
    used = [name for name in specs if inputs[name].name.split(":")[0] in kept]
    wrapped = v1.wrap_function(lambda: tf.import_graph_def(frozen, name=""), [])
    tensor = wrapped.graph.as_graph_element
    model = wrapped.prune(
        [tensor(inputs[name].name) for name in used],
        {name: tensor(info.name) for name, info in outputs.items()},
    )

    def call(*tensors: Any) -> dict[str, Any]:
        batch = tf.shape(tensors[0])[0] if tensors[0].shape.rank else 1
        named = dict(zip(free, tensors, strict=True))
        named.update((name, fixed(name, batch)) for name in constants)
        replies = model(*(named[name] for name in used))
        # An output that is also an input needs a name of its own.
        return {name: tf.identity(value) for name, value in replies.items()}

    about = {
        "signature": chosen,
        "inputs": [described(name, specs[name]) for name in free],
        "outputs": sorted(outputs),
        "constants": constants,
        "version": "tensorflow " + tf.__version__,
    }
    return call, [tf.TensorSpec(specs[n].shape, specs[n].dtype, n) for n in free], about


def described(name: str, spec: Any) -> dict[str, Any]:
    """Returns the name, type and shape of an input."""
    if spec.shape.rank is None:
        raise Unfit(f"input '{name}': expected a shape, found a tensor of any rank")
    return {"name": name, "type": spec.dtype.name, "shape": spec.shape.as_list()}


def run(job: Mapping[str, Any], say: Callable[[Mapping[str, Any]], None]) -> None:
    """Converts a model, and then answers the requests of stdin."""
    import tensorflow as tf

    call, signature, about = load(job["folder"], job["signature"], job["constants"])
    model = convert(call, signature, job["opset"])
    Path(job["to"]).write_bytes(model.SerializeToString())
    say(about)
    evaluate = tf.function(call, input_signature=signature)
    for line in sys.stdin:
        request = json.loads(line)
        tensors = [tf.constant(request[s.name], s.dtype) for s in signature]
        say(
            {name: value.numpy().tolist() for name, value in evaluate(*tensors).items()}
        )


def main() -> None:
    """Runs the job of the command line. Prints an error as a line of JSON, too."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Redirect stdout to stderr, because TensorFlow may print to stdout.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: Mapping[str, Any]) -> None:
        print(json.dumps(message), file=output, flush=True)

    try:
        run(json.loads(sys.argv[1]), say)
    except ModuleNotFoundError as error:
        say({"missing": error.name})
    except Unfit as error:
        say({"error": str(error)})
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
