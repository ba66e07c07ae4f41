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
