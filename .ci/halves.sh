#!/usr/bin/env bash
# Looks in the instructions of the bench's loops for a word that is written to the stack in two
# halves and then read whole: the processor waits there until both have left for the cache, and a
# stream comes at a third of its rate (`cargo bench -p benches --bench handoffs -- halves`). The
# loops of one receiver do that on purpose: if none of them is found, this check sees nothing.
#
#   .ci/halves.sh
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: it reads instructions of x86-64"; exit 0; }
command -v objdump >/dev/null || { echo "SKIPPED: no objdump here (Debian: binutils)"; exit 0; }
# With the launcher's features, as for the other benches: see .ci/quoted.sh.
bench=$(cargo bench --quiet -p launcher -p benches --bench handoffs --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*handoffs-[^"]*\)".*/\1/p' | tail -n 1)
objdump -d --no-show-raw-insn "$bench" | perl -ne '
    if (/^[0-9a-f]+ <(.*)>:$/) { $name = $1; %half = (); $loops += $is = $name =~ /handoffs4(flow|trip).*(take|send|echo|call)/; next }
    $on_purpose{$name} = 1 if /HalvedReceiver/;
    next unless $is && /^\s+[0-9a-f]+:\s+(\S+)\s+(.*?)\s*(?:[#<].*)?$/;
    my ($op, $args) = ($1, $2);
    # What matches last has $1 and what follows.
    if ($op =~ /^mov/ && $args =~ /^(%\w+|\$\w+),(-?(?:0x[0-9a-f]+)?)\((%r[sb]p)\)$/) {
        my ($what, $place, $base) = ($1, hex($2 || 0), $3);
        my $narrow = $op eq "movl" || $what =~ /^%(e\w+|r\d+d)$/;
        if ($narrow) { $half{$base, $place} = 1 } else { delete $half{$base, $place + $_} for 0, 4, 8, 12 }
    } elsif ($op =~ /^call/) {
        %half = ();
    # An address (lea) is not a load, and half a word (r8d) is read as it was written.
    } elsif ($op ne "lea" && $args =~ /^(-?(?:0x[0-9a-f]+)?)\((%r[sb]p)\),%(?:r[a-d]x|r[sd]i|r[sb]p|r\d+|xmm\d+)$/ || $op =~ /^(?:cmp|cmpq)$/ && $args =~ /^(?:%r[a-d]x|%r[sd]i|%r[sb]p|%r\d+|\$\w+),(-?(?:0x[0-9a-f]+)?)\((%r[sb]p)\)$/) {
        my ($place, $base) = (hex($1 || 0), $2);
        $found{$name}++ if $half{$base, $place} && $half{$base, $place + 4};
    }
    END {
        my @others = grep { !$on_purpose{$_} } sort keys %found;
        my $seen = keys(%found) - @others;
        print "$loops loops of the bench: $seen that does it on purpose was found, and ", scalar(@others), " others\n";
        print "  $_\n" for @others;
        exit($seen == 0 || @others > 0);
    }'
