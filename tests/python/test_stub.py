# SPDX-License-Identifier: Apache-2.0
"""_einc.pyi says what the extension module has: no name more, none less."""

import ast
from pathlib import Path

import einc
from einc import _einc

STUB = Path(einc.__file__).with_name("_einc.pyi")


def members(body):
    names = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names |= {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    return names | {node.targets[0].id for node in body if isinstance(node, ast.Assign)}


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_stub_names_what_there_is():
    tree = ast.parse(STUB.read_text())
    assert {n for n in members(tree.body) if not n.startswith("_")} == public(_einc)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            there = getattr(_einc, node.name)
            names = set(there.__members__) if hasattr(there, "__members__") else public(there)
            assert {n for n in members(node.body) if not n.startswith("_")} == names, node.name


def test_the_version_is_the_project_s():
    cmake = Path(__file__).parents[2] / "CMakeLists.txt"
    assert f"project(einc VERSION {einc.__version__} " in cmake.read_text()
    assert (STUB.parent / "py.typed").exists()
