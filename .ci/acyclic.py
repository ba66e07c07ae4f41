#!/usr/bin/env python3
"""Fails if the modules of a crate import each other in a circle: `.ci/acyclic.py CRATE…`, or all crates of the workspace.

A module is a file; a `mod.rs`, or a file with a folder beside it, is the door to its folder: what it re-exports is followed to
where it comes from. Imports of tests (after `#[cfg(test)]`) do not count.
"""
import pathlib, re, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def modules(src):
    """Each module's path, as a tuple of names, with its text."""
    found = {}
    for file in sorted(src.rglob("*.rs")):
        parts = file.relative_to(src).with_suffix("").parts
        if parts in (("main",), ("tests",)) or parts[-1] == "tests":
            continue
        path = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
        text = file.read_text().split("#[cfg(test)]")[0].split("#[cfg(all(test")[0]
        found[path] = re.sub(r"//[^\n]*", "", text)
    return found


def trees(text):
    """The paths of all `use` items, braces expanded, with whether each is a re-export, and how deep in inline modules."""
    for match in re.finditer(r"(?<![\w.])(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", text):
        before = text[: match.start()]
        # Inline modules (`mod link { … }`): the braces that are open here and belong to one.
        depth = 0
        for inline in re.finditer(r"\bmod\s+\w+\s*\{", before):
            inside = before[inline.end() :]
            depth += inside.count("{") - inside.count("}") >= 0
        yield from ((path, bool(match[1]), depth) for path in expand(re.sub(r"\s+", "", match[2].replace(" as ", "@"))))


def expand(tree):
    at = tree.find("{")
    if at < 0:
        yield tree.split("@")[0]
        return
    level, part, parts = 0, "", []
    for char in tree[at + 1 : -1]:
        level += (char == "{") - (char == "}")
        if char == "," and level == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    for inner in parts + [part]:
        if inner:
            yield from (tree[:at] + rest for rest in expand(inner))


def absolute(path, here, depth):
    names = path.split("::")
    if names[0] == "crate":
        return tuple(names[1:])
    base = here
    while names and names[0] in ("super", "self"):
        if names[0] == "super":
            if depth:
                depth -= 1
            else:
                base = base[:-1]
        names = names[1:]
        if not (names and names[0] == "super"):
            return base + tuple(names)
    return None


def graph(found):
    exports = {}
    for here, text in found.items():
        for path, public, depth in trees(text):
            names = path.split("::")
            target = absolute(path, here, depth) or (here + tuple(names) if here + tuple(names[:1]) in found else None)
            if public and target and not depth:
                exports[here + (target[-1],)] = target

    def owner(target, seen=()):
        """The module that a path leads to; re-exports are followed."""
        for length in range(len(target), -1, -1):
            if target[:length] in exports and target[:length] not in seen:
                return owner(exports[target[:length]] + target[length:], seen + (target[:length],))
            if target[:length] in found:
                return target[:length]

    edges = {here: set() for here in found}
    for here, text in found.items():
        for path, public, depth in trees(text):
            target = absolute(path, here, depth)
            if target is None or public:
                continue
            to = owner(target)
            # A door is not a user of what is behind it, nor what is behind it of the door's own declarations.
            if to is not None and to != here and to != ():
                edges[here].add(to)
        for path in re.findall(r"\bcrate::((?:\w+::)+)\w", text):
            to = owner(tuple(path.strip(":").split("::")))
            if to and to != here:
                edges[here].add(to)
    return edges


def circles(edges):
    """Strongly connected components of more than one module (Tarjan)."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for to in edges[node]:
            if to not in index:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in on:
                low[node] = min(low[node], index[to])
        if low[node] == index[node]:
            part = []
            while True:
                part.append(stack.pop())
                on.discard(part[-1])
                if part[-1] == node:
                    break
            if len(part) > 1:
                out.append(sorted(part))

    for node in edges:
        if node not in index:
            visit(node)
    return out


def main():
    sys.setrecursionlimit(10_000)
    names = sys.argv[1:] or [path.parent.parent.name for path in sorted(ROOT.glob("*/src/lib.rs"))]
    bad = 0
    for name in names:
        edges = graph(modules(ROOT / name / "src"))
        found = circles(edges)
        print(f"{name}: {len(edges)} modules, {len(found)} circles")
        for part in found:
            bad += 1
            for node in part:
                uses = sorted("::".join(to) for to in edges[node] if to in part)
                print(f"  {'::'.join(node)} uses {', '.join(uses)}")
    sys.exit(bad > 0)


main()
