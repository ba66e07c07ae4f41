#!/bin/sh
# Builds the C++ programs of the crash table: build.sh OUT [PREFIX VERSION]. OUT is
# proofs/referees/target/crash-peers unless CRASH_TABLE_PEERS names another folder for the trials.
# PREFIX is where cpp-ipc of that version is installed: include/libipc and lib/libipc.a.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../target/crash-peers}
mkdir -p "$out"
compile() { # program, then arguments of the compiler
    program=$1
    shift
    echo "building $program"
    g++ -std=c++20 -O2 -o "$out/$program" "$here/$program.cpp" "$@" -lrt -lpthread
}
compile posix-mq
compile sysv-msg
compile unix-seqpacket
# bulkhead's own queue, inline: a program for each size of a message.
root=$(cd "$here/../../../.." && pwd)
library=${CARGO_TARGET_DIR:-$root/target}/release/libbulkhead_queue.a
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
if [ -e "$library" ]; then
    for bytes in 4 8 64 1000; do
        echo "building bulkhead-inline-$bytes"
        g++ -std=c++20 -O2 -o "$out/bulkhead-inline-$bytes" "-DBYTES=$bytes" "-DBULKHEAD_VERSION=\"$version\"" \
            -I"$root/contrib/bindings/queue/include" "$here/bulkhead-inline.cpp" "$library" -lrt -lpthread -ldl -lm
    done
else
    echo "SKIPPED bulkhead-inline: cargo build --release --package bulkhead-queue, in the root" >&2
fi
if [ -e /usr/include/boost/version.hpp ]; then
    compile boost-queue
else
    echo "SKIPPED boost-queue: apt-get install libboost-dev" >&2
fi
if [ $# -ge 3 ]; then
    compile cpp-ipc -I"$2/include" "-DCPP_IPC_VERSION=\"$3\"" -L"$2/lib" -lipc
else
    echo "SKIPPED cpp-ipc: give the prefix where it is installed, and its version" >&2
fi
# Java: JAVA_BIN is a folder with java and javac of 22 or newer (.ci/languages.sh makes
# target/languages/java/bin). Agrona and Aeron are fetched with Maven.
agrona=2.2.4 aeron=1.51.0 aeron_agrona=2.4.1
[ -z "${JAVA_BIN:-}" ] || JAVA_BIN=$(cd "$JAVA_BIN" && pwd)
fetch() { # artifact, then folder
    mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy "-Dartifact=$1" "-DoutputDirectory=$2"
}
java_program() { # program, its class, folder, class path of its libraries, then options
    program=$1 class=$2 folder=$3 libraries=$4
    shift 4
    "$JAVA_BIN/javac" -d "$folder" -cp "$libraries" "$here/Role.java" "$here/$class.java"
    cat >"$out/$program" <<END
#!/bin/sh
exec "$JAVA_BIN/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData $* \\
    --add-opens java.base/jdk.internal.misc=ALL-UNNAMED --enable-native-access=ALL-UNNAMED -cp "$folder:$libraries" $class "\$@"
END
    chmod +x "$out/$program"
}
if [ -n "${JAVA_BIN:-}" ] && command -v mvn >/dev/null; then
    out=$(cd "$out" && pwd)
    echo "building agrona"
    fetch "org.agrona:agrona:$agrona" "$out/java"
    java_program agrona AgronaRing "$out/java" "$out/java/agrona-$agrona.jar" "-Dagrona.version=$agrona"
    echo "building aeron-ipc"
    jars=$out/aeron
    fetch "io.aeron:aeron-client:$aeron" "$jars"
    fetch "io.aeron:aeron-driver:$aeron" "$jars"
    fetch "org.agrona:agrona:$aeron_agrona" "$jars"
    java_program aeron-ipc AeronIpc "$jars" "$jars/aeron-client-$aeron.jar:$jars/aeron-driver-$aeron.jar:$jars/agrona-$aeron_agrona.jar" \
        "-Daeron.version=$aeron" "-Daeron.program=$out/aeron-ipc"
else
    echo "SKIPPED agrona, aeron-ipc: set JAVA_BIN to a folder with java and javac of 22 or newer, and install Maven" >&2
fi
