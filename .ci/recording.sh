#!/usr/bin/env bash
# Makes docs/src/images/recording.svg: a terminal session of half a minute, in which a strategy is
# killed, the others trade on, and its successor is there. All of it is a real session in a shell on
# a pseudoterminal, with its own output and times; only the typing is paced. `FILE` in place of the
# picture: bash .ci/recording.sh target/release/launcher FILE
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=$(realpath "${1:-target/release/launcher}")
picture=$(realpath -m "${2:-docs/src/images/recording.svg}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nexec %s "$@"\n' "$launcher" >"$work/launcher"
chmod +x "$work/launcher"
mkdir "$work/session"
cd "$work/session"
PATH="$work:$PATH" python3 - "$picture" <<'PY'
import html, os, pty, re, select, subprocess, sys, time, fcntl, struct, termios

COLUMNS, ROWS, TAIL_S, MAX_BYTES = 80, 24, 5.0, 200_000
KEY_S, GRID_S = 0.05, 0.1  # between keys; states within one cell of this grid are one

pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(PS1="$ ", TERM="dumb", LANG="C.UTF-8")
    os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

began = time.monotonic()
lines, cursor = [""], [0, 0]  # of the whole session; row, column
states, shown = [], {}  # (row, text, from, to); row: (text, from)
scrolls, pending = [(0.0, 0)], b""

def put(character):
    row, column = cursor
    if character == "\n":
        cursor[0] += 1
        lines.extend([""] * (cursor[0] + 1 - len(lines)))
    elif character == "\r":
        cursor[1] = 0
    elif character == "\b":
        cursor[1] = max(0, column - 1)
    elif character >= " ":
        if column == COLUMNS:
            put("\n"), put("\r")
            row, column = cursor
        lines[row] = lines[row].ljust(column)[:column] + character + lines[row][column + 1:]
        cursor[1] += 1

def look(seconds):
    """Reads what the terminal shows within some time."""
    global pending
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            break
        try:
            pending += os.read(terminal, 65536)
        except OSError:
            break
        text = pending.decode("utf-8", "ignore")
        pending = b"" if text.encode() == pending else pending
        if pending:
            continue
        for character in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text):
            put(character)
        now = round((time.monotonic() - began) / GRID_S) * GRID_S
        for row, line in enumerate(lines):
            before = shown.get(row, ("", 0.0))
            if line.rstrip() != before[0]:
                if before[0] and before[1] < now:
                    states.append((row, before[0], before[1], now))
                shown[row] = (line.rstrip(), now)
        top = max(0, cursor[0] + 1 - ROWS)
        if top != scrolls[-1][1]:
            scrolls.append((now, top))

def wait_for_prompt():
    limit = time.monotonic() + 120
    while lines[cursor[0]] != "$ ":
        assert time.monotonic() < limit, "\n".join(lines)
        look(0.05)

def enter(command, pause=0.5):
    """Types a command, as a person would, and waits for its end. Returns what it printed."""
    wait_for_prompt()
    first = cursor[0]
    for key in command + "\n":
        os.write(terminal, key.encode())
        look(KEY_S)
    wait_for_prompt()
    look(pause)
    return "\n".join(lines[first + 1:cursor[0]])

WATCH = "launcher watch latest --once | head -9"
enter("launcher run --strategies 3 --window 14s --on-death restart &>report &", 3)
watched = enter(WATCH, 1.5)
victim = re.search(r"strategy-1 (\d+)", watched)[1]
enter(f"kill -9 {victim}", 0.2)
watched = enter(WATCH, 2)
successor = re.search(r"strategy-1 (\d+)", watched)[1]
assert successor != victim, "no successor"
end = enter("wait; grep -A1 -E '^(orders|incidents)' report", 0.5)
assert "lost by survivors 0" in end and "restarted 1" in end, end
os.write(terminal, b"exit\n")
os.waitpid(pid, 0)

# The picture: each state of a line is visible from its time on, until the next state.
width, height, line_height, margin, bar = 8.4, 18, 18, 14, 30
total = max(state[1] for state in shown.values()) + TAIL_S
states += [(row, text, since, None) for row, (text, since) in shown.items() if text]
percent = lambda seconds: f"{100 * seconds / total:.2f}%"
frames, texts = [], []
for number, (row, text, since, until) in enumerate(sorted(states)):
    hidden = "" if until is None else percent(until) + "{visibility:hidden}"
    frames.append(f"@keyframes k{number}{{0%{{visibility:hidden}}{percent(since)}{{visibility:visible}}{hidden}}}")
    kind = "c" if text.startswith("$") else "b" if re.search(r"lost by survivors 0|strategy-1 ", text) else "t"
    style = f"animation-name:k{number}" + ("" if until is None else ";visibility:hidden")
    texts.append(
        f'<text class="{kind}" style="{style}" x="{margin}" y="{(row + 1) * line_height}" '
        f'textLength="{len(text) * width:.1f}" lengthAdjust="spacingAndGlyphs">{html.escape(text)}</text>'
    )
scroll = "".join(f"{percent(at)}{{transform:translateY({-top * line_height}px)}}" for at, top in scrolls)
last = scrolls[-1][1] * line_height
w, h = round(2 * margin + COLUMNS * width), bar + margin + ROWS * line_height
picture = f"""<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-labelledby="t d">
<title id="t">A strategy is killed, the others trade on, its successor is there</title>
<desc id="d">{total:.0f} seconds of a terminal: launcher run with three strategies; kill -9 of strategy-1; launcher watch shows the others' orders go on and a new process for strategy-1; the report says lost by survivors 0.</desc>
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#d5dbe3;animation:{total:.1f}s step-end infinite}}
.c{{fill:#7fd1ff}}.b{{fill:#9be38b}}
#s{{transform:translateY({-last}px);animation:s {total:.1f}s step-end infinite}}
@keyframes s{{{scroll}}}
{chr(10).join(frames)}
@media(prefers-reduced-motion:reduce){{text,#s{{animation:none!important}}}}
</style>
<rect width="{w}" height="{h}" rx="8" fill="#14181f" stroke="#56606e"/>
<g fill="#56606e"><circle cx="18" cy="16" r="5"/><circle cx="36" cy="16" r="5"/><circle cx="54" cy="16" r="5"/></g>
<clipPath id="v"><rect y="{bar}" width="{w}" height="{h - bar - margin / 2}"/></clipPath>
<g clip-path="url(#v)"><g transform="translate(0 {bar - 4})"><g id="s">
{chr(10).join(texts)}
</g></g></g>
</svg>
"""
assert len(picture.encode()) < MAX_BYTES, len(picture)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write(picture)
print(f"{sys.argv[1]}: {total:.1f} s, {len(picture.encode()):,} bytes, {len(states)} states of lines")
PY
