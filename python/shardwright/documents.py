"""What the files that `shardwright export --to stablehlo` writes must have, so that one that is damaged, or of
another program, is refused in a line that says where.

docs/commands.md has the keys of placements, docs/export.md those of the index of a plan with stages.
"""

import contextlib
import json
import math
import pathlib
import re

from .command import ShardwrightError

TYPE = r"pred|bf16|[sufc]\d+|f\d+e\w+"
TYPES = {"pred": "bool", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128"}


def read(path):
    """The text of a file."""
    try:
        return pathlib.Path(path).read_text()
    except OSError as trouble:
        raise ShardwrightError(f"{path}: {trouble.strerror}") from None
    except UnicodeDecodeError:
        raise ShardwrightError(f"{path}: expected text") from None


def read_json(path):
    try:
        return json.loads(read(path))
    except ValueError as trouble:
        raise ShardwrightError(f"{path}: no JSON: {str(trouble).splitlines()[0]}") from None


def dtype_of(word):
    """JAX's name of an element type: f32 is float32, s8 int8, f8e5m2 float8_e5m2."""
    letters, digits = re.match(r"([a-z]+)(\d*)", word).groups()
    if word in TYPES:
        return TYPES[word]
    if letters == "f" and word == letters + digits and int(digits) >= 16:
        return "float" + digits
    if letters in ("s", "u") and word == letters + digits:
        return ("int" if letters == "s" else "uint") + digits
    return re.sub(r"^f(\d+)(e)", r"float\1_\2", word)


class Place:
    """A value of a document, and where it stands."""

    def __init__(self, value, where):
        self.value, self.where = value, where

    def refuse(self, expected):
        found = json.dumps(self.value, default=repr)
        raise ShardwrightError(f"{self.where}: expected {expected}, found {found[:60]}")

    def __getitem__(self, key):
        """What stands under a key of an object."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        if key not in self.value:
            raise ShardwrightError(f"{self.where}: expected the key {key}, which is not there")
        return Place(self.value[key], f"{self.where}.{key}")

    def items(self, n=None, of=""):
        """The values of a list, as places; of so many, if that is given."""
        if not isinstance(self.value, list):
            self.refuse("a list")
        if n is not None and len(self.value) != n:
            raise ShardwrightError(f"{self.where}: expected {n} values{of}, found {len(self.value)}")
        return [Place(value, f"{self.where}[{i}]") for i, value in enumerate(self.value)]

    def number(self, low=0, below=math.inf):
        """A whole number from `low` on that is below `below`."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value < below:
            self.refuse(f"a whole number from {low}" + (f" to {below - 1}" if below < math.inf else ""))
        return self.value

    def numbers(self, low=0, below=math.inf):
        return [item.number(low, below) for item in self.items()]

    def word(self):
        if not isinstance(self.value, str):
            self.refuse("a word")
        return self.value


def check_inputs(sidecar):
    """Of the inputs of a sidecar what is needed to write them: docs/programs.md has the keys."""
    for entry in Place(sidecar, "sidecar")["inputs"].items():
        entry["name"].word()
        entry["role"].word()
        entry["shape"].numbers()
        _type(entry["type"])


@contextlib.contextmanager
def located(path):
    """Name the file of a document in what is refused of it; None: it is of no file."""
    try:
        yield
    except ShardwrightError as refusal:
        if path is None:
            raise
        words = str(refusal)
        raise ShardwrightError(words if words.startswith(str(path.parent)) else f"{path}: {words}") from None


def check_format(document, wanted):
    top = Place(document, "document")
    if top["format"].value != wanted:
        top["format"].refuse(f'"{wanted}"')
    if top["version"].value != 1:
        top["version"].refuse("1: the command and the package are of different versions")


def is_index(document):
    return isinstance(document, dict) and document.get("format") == "shardwright-stage-modules"


def modules_of(index):
    """The files of an index, which are in its folder."""
    found = set()
    for piece in Place(index, "index")["pieces"].items():
        module = piece["module"]
        if pathlib.Path(module.word()).name != module.value:
            module.refuse("the name of a file in the same folder")
        found.add(module.value)
    return found


def check_placements(document):
    """Of the file NAME.placement.json, or of the ports of a piece."""
    top = Place(document, "placements")
    _atoms(top)
    mesh = _mesh(top["mesh"], top["devices"].number(1))
    outputs = top["outputs"].items()
    for port in top["inputs"].items() + outputs:
        _port(port, mesh)
        if port.value.get("output") is not None:
            port["output"].number(0, len(outputs))


def _atoms(top):
    """Check the atoms of a cluster, where there are some: the ports of a piece have none."""
    if isinstance(top.value, dict) and "atoms" in top.value:
        for atom in top["atoms"].items():
            atom["size"].number(1)
            atom["level"].word()


def _mesh(place, devices):
    """Check the axes of so many devices, and return their sizes by name."""
    mesh = {}
    for axis in place.items():
        name = axis["name"].word()
        if name in mesh:
            axis["name"].refuse("another name than the axes before")
        mesh[name] = axis["size"].number(1)
    if math.prod(mesh.values()) != devices:
        place.refuse(f"axes whose sizes multiply to {devices} devices")
    return mesh


def _type(place):
    import jax

    try:
        if re.fullmatch(TYPE, place.word()):
            return jax.numpy.dtype(dtype_of(place.value))
    except TypeError:
        pass
    place.refuse("an element type, such as f32")


def _port(port, mesh):
    """Check how an array lies on a mesh."""
    port["name"].word()
    _type(port["type"])
    shape = port["shape"].numbers()
    for size, padded in zip(shape, port["padded"].items(len(shape), ", one for each dimension of the shape")):
        padded.number(size)
    digits = port["digits"].numbers(0 if 0 in shape else 1)
    rest = list(digits)
    for padded in port["padded"].value:
        product = rest.pop(0) if rest else None
        while product is not None and product < padded and rest:
            product *= rest.pop(0)
        if product != padded:
            port["digits"].refuse(f"sizes that multiply to those of {port['padded'].value}")
    if rest:
        port["digits"].refuse(f"sizes that multiply to those of {port['padded'].value}")
    used = set()
    for digit, of_digit in zip(digits, port["spec"].items(len(digits), ", one for each digit")):
        for axis in of_digit.items():
            if axis.word() not in mesh or axis.value in used:
                axis.refuse(f"an axis of the mesh ({', '.join(mesh)}) that cuts nothing else")
            used.add(axis.value)
        if digit % math.prod(mesh[axis] for axis in of_digit.value):
            of_digit.refuse(f"axes that divide {digit}")


def check_index(index, texts):
    """Of the index of a plan with stages. texts: of the modules, by the names of their files."""
    top = Place(index, "index")
    _atoms(top)
    devices, slices = top["devices"].number(1), top["slices"].items()
    meshes, end = [], 0
    for s in slices:
        n = s["devices"].number(1, devices + 1)
        end = s["first_device"].number(end, devices - n + 1) + n
        meshes.append(_mesh(s["mesh"], n))
    layouts = top["layouts"].items()
    for layout in layouts:
        _port(layout, meshes[layout["slice"].number(0, len(slices))])
    arrays = top["arrays"].numbers(0, len(layouts))
    lie = lambda number: layouts[arrays[number.number(0, len(arrays))]].value
    pieces = top["pieces"].items()
    for piece in pieces:
        _piece(piece, texts, layouts, len(slices))
    there = _inputs(top["inputs"], lie)
    for call in top["calls"].items():
        _call(call, pieces, lambda port: layouts[port].value, lie, there)
    given = [(part["shape"], entry["type"]) for entry in index["inputs"] for part in entry["parts"]]
    for entry in top["outputs"].items():
        _output(entry, given, lie, there)


def _piece(piece, texts, layouts, slices):
    piece["name"].word()
    if piece["module"].word() not in texts:
        piece["module"].refuse("the name of a module's file that is there")
    s = piece["slice"].number(0, slices)
    for key in "inputs", "outputs":
        for port in piece[key].items():
            if layouts[port.number(0, len(layouts))].value["slice"] != s:
                port.refuse(f"a layout on slice {s}")


def _entry(entry):
    """An input or result of the step."""
    entry["name"].word()
    _type(entry["type"])
    entry["shape"].numbers()
    if not entry["parts"].items():
        entry["parts"].refuse("at least one part")


def _inputs(place, lie):
    """Check the inputs, and return the numbers of their arrays."""
    there = set()
    for entry in place.items():
        _entry(entry)
        parts = entry["parts"].items()
        _whole(entry, [part["shape"].numbers() for part in parts])
        for part in parts:
            of_part, seen = part["shape"].value, set()
            for number in part["arrays"].items():
                layout = lie(number)
                if layout["shape"] != of_part or layout["type"] != entry["type"].value:
                    number.refuse(f"an array of {entry['type'].value}{of_part}")
                if number.value in there or layout["slice"] in seen:
                    number.refuse("an array of its own, on a slice of its own")
                there.add(number.value)
                seen.add(layout["slice"])
    return there


def _output(entry, given, lie, there):
    """Check a result. given: shape and type of each part of the inputs."""
    _entry(entry)
    shapes = []
    for part in entry["parts"].items():
        if part["array"].value is None:
            shape, kind = given[part["input"].number(0, len(given))]
        else:
            shape, kind = (lie(part["array"])[key] for key in ("shape", "type"))
            if part["array"].value not in there:
                part["array"].refuse("an array that a call makes")
        if kind != entry["type"].value:
            part["array"].refuse(f"an array of {entry['type'].value}")
        shapes.append(shape)
    _whole(entry, shapes)


def _whole(entry, shapes):
    """Check that arrays of these shapes make the whole one, along the first dimension."""
    whole = entry["shape"].value
    right = shapes == [whole] if len(shapes) == 1 else bool(whole) and all(s[1:] == whole[1:] and s for s in shapes)
    if not right or (whole and sum(s[0] for s in shapes) != whole[0]):
        entry["parts"].refuse(f"parts that make {whole}")


def _call(call, pieces, layout, lie, there):
    """Check a call, and add what it makes to what is there."""
    inputs, outputs = call["inputs"].items(), call["outputs"].items()
    for number in inputs:
        if number.number() not in there:
            number.refuse("an array that is there before the call")
    given = {number.value for number in inputs}
    for number in outputs:
        lie(number)
        if number.value in there and number.value not in given:
            number.refuse("a new array, or an input of the call")
    if "piece" in call.value:
        piece = pieces[call["piece"].number(0, len(pieces))].value
        for key, numbers in ("inputs", inputs), ("outputs", outputs):
            for number, port in zip(call[key].items(len(piece[key]), f", as piece {piece['name']} has"), piece[key]):
                if lie(number) | {"name": ""} != layout(port) | {"name": ""}:
                    number.refuse(f"an array that lies as layout {port}")
    else:
        a, b = (lie(call[key].items(1, " where no piece is called")[0]) for key in ("inputs", "outputs"))
        if a["slice"] == b["slice"] or (a["shape"], a["type"]) != (b["shape"], b["type"]):
            call["outputs"].refuse(f"an array of {a['type']}{a['shape']} on another slice")
    there.update(number.value for number in outputs)
