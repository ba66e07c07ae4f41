#!/bin/sh
# Installs the queue for C and C++: `contrib/bindings/queue/install.sh PREFIX [LIBRARIES]`. Headers
# to PREFIX/include, the shared and the static library to PREFIX/lib, and bulkhead-queue.pc to
# PREFIX/lib/pkgconfig. DESTDIR is put before PREFIX, for packages. LIBRARIES is the folder of built
# libraries; without it they are built in release.
set -eu
cd "$(dirname "$0")/../../.."
prefix=${1:?the folder to install to, for example /usr/local}
case $prefix in /*) ;; *) echo "$prefix: the folder must begin with /" >&2 && exit 2 ;; esac
libraries=${2:-}
if [ -z "$libraries" ]; then
    cargo build --release --package bulkhead-queue
    libraries=${CARGO_TARGET_DIR:-target}/release
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
[ -n "$version" ] || { echo "no version in Cargo.toml" >&2 && exit 1; }
# The major version of the interface, which is BHQ_VERSION's: a program of another one does not load
# this library.
major=1
to=${DESTDIR:-}$prefix
mkdir -p "$to/include" "$to/lib/pkgconfig"
for header in bulkhead_queue.h bulkhead_queue_inline.h bulkhead_queue.hpp; do
    cp "contrib/bindings/queue/include/$header" "$to/include/"
done
cp "$libraries/libbulkhead_queue.a" "$to/lib/"
cp "$libraries/libbulkhead_queue.so" "$to/lib/libbulkhead_queue.so.$major"
ln -sf "libbulkhead_queue.so.$major" "$to/lib/libbulkhead_queue.so"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" contrib/bindings/queue/bulkhead-queue.pc.in >"$to/lib/pkgconfig/bulkhead-queue.pc"
echo "bulkhead-queue $version is in $to"
