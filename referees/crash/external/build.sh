#!/bin/sh
# Builds the C++ programs of the crash table: build.sh OUT [PREFIX VERSION]. OUT is
# referees/target/crash-peers unless CRASH_TABLE_PEERS names another folder for the trials. PREFIX is
# where cpp-ipc of that version is installed: include/libipc and lib/libipc.a.
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
# Java: JAVA_BIN is a folder with java and javac of 22 or newer (.ci/languages.sh makes target/languages/java/bin). Agrona is fetched
# with Maven.
agrona=2.2.4
[ -z "${JAVA_BIN:-}" ] || JAVA_BIN=$(cd "$JAVA_BIN" && pwd)
if [ -n "${JAVA_BIN:-}" ] && command -v mvn >/dev/null; then
    echo "building agrona"
    mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        "-Dartifact=org.agrona:agrona:$agrona" "-DoutputDirectory=$out/java"
    jar=$out/java/agrona-$agrona.jar
    "$JAVA_BIN/javac" -d "$out/java" -cp "$jar" "$here/Role.java" "$here/AgronaRing.java"
    cat >"$out/agrona" <<END
#!/bin/sh
exec "$JAVA_BIN/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Dagrona.version=$agrona \\
    --add-opens java.base/jdk.internal.misc=ALL-UNNAMED --enable-native-access=ALL-UNNAMED -cp "$out/java:$jar" AgronaRing "\$@"
END
    chmod +x "$out/agrona"
else
    echo "SKIPPED agrona: set JAVA_BIN to a folder with java and javac of 22 or newer, and install Maven" >&2
fi
