#!/usr/bin/env bash
# What the hand-offs and the whole way cost by an older build and by this one, in turns on the same
# cores (A B B A …), and what the two have in common of their figures: medians over the runs with
# quartiles, and in how many pairs this build was the lower one.
#
#   bash .ci/before.sh [COMMIT]              default: the build with blocks in its rings
#                                            (2026-11-25); about 15 minutes
#   PAIRS=2 SAMPLES=5 bash .ci/before.sh     fewer and shorter runs
#   AGAIN=1 bash .ci/before.sh               the same runs printed again
#
# Of rt_venue p50 also what is left of it without the clock reads and without one line's way there
# and back, in step and out of step. A pair whose cores were near each other in one run and far in
# the other (the floor: below 150 ns, or not) is left out and counted.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=${1:-b325ecc7}
pairs=${PAIRS:-8} samples=${SAMPLES:-21} out=target/before
tree=$out/tree
git cat-file -e "$commit^{commit}" 2>/dev/null || { echo "SKIPPED, NOTHING WAS COMPARED: this clone does not have $commit"; exit 0; }

# Builds launcher and bench in a folder, and prints where the bench is: once it was of
# `shm`, and then of `techniques`.
built() {
  local package=shm
  [ ! -d "$1/techniques" ] || package=techniques
  [ ! -d "$1/experiments/benches" ] || package=benches
  (cd "$1" && cargo build --quiet --release -p launcher --bin launcher &&
    cargo bench --quiet -p "$package" --bench handoffs --no-run --message-format=json) |
    sed -n 's/.*"executable":"\([^"]*handoffs-[^"]*\)".*/\1/p' | tail -n 1
}

# All figures of one build, once.
one() { # NAME BENCH LAUNCHER PAIR
  "$2" --bench capacity --samples "$samples" --json >"$out/runs/$1.$4.capacity.json"
  "$2" --bench scan --samples "$samples" --json >"$out/runs/$1.$4.scan.json"
  for orders in 1k 20k 400k; do
    "$3" run --technique spsc-mux --isolation process --strategies 1 --venues 1 --orders "$orders" --window 1s --idle spin \
      --delay uniform:1ms..20ms --seed "$4" --json --out "$out/folders" >"$out/runs/$1.$4.way-$orders.json" 2>/dev/null </dev/null ||
      echo "$1, pair $4, $orders orders: the run failed" >&2
    # By this build's bench: the other one has no such section, or another one.
    "$new" --bench floors --samples 5 --json >"$out/runs/$1.$4.way-$orders.floors.json"
  done
  rm -rf "$out/folders"
}

measure() {
  rm -rf "$out/runs" && mkdir -p "$out/runs" "$tree"
  # Files of another commit would be taken for this one's; what was built stays.
  find "$tree" -mindepth 1 -maxdepth 1 ! -name target -exec rm -rf {} +
  git archive "$commit" | tar -x -C "$tree"
  local old new
  old=$(built "$tree") new=$(built .)
  printf 'old: %s   new: %s   %s pairs, %s samples each\n' "$(git log -1 --format='%h of %cs' "$commit")" \
    "$(git log -1 --format='%h of %cs')" "$pairs" "$samples" >"$out/runs/header"
  echo "$pairs" >"$out/runs/pairs"
  for pair in $(seq "$pairs"); do
    local turns=(old new)
    [ $((pair % 2)) = 1 ] || turns=(new old)
    for turn in "${turns[@]}"; do
      case $turn in
      old) one old "$old" "$tree/target/release/launcher" "$pair" ;;
      new) one new "$new" target/release/launcher "$pair" ;;
      esac
    done
    echo "pair $pair of $pairs ($SECONDS s)" >&2
  done
}
[ -n "${AGAIN:-}" ] || measure

cat "$out/runs/header"
perl -MJSON::PP -Mutf8 -CO -e '
  my ($folder, $pairs) = @ARGV;
  sub quartile { my ($q, @v) = @_; @v = sort { $a <=> $b } @v; $v[int((@v - 1) * $q / 4)] }
  sub read_json { open my $file, "<", "$folder/$_[0].json" or return; eval { decode_json(join "", <$file>) } }
  # What a run measured: name → figure, and the floor that goes with it.
  sub figures {
    my ($build, $pair, $part) = @_;
    my $run = read_json("$build.$pair.$part") or return;
    my (%found, $floor);
    if ($run->{sections}) {
      for my $section (@{$run->{sections}}) {
        my $last = "";
        for my $row (@{$section->{rows}}) {
          $last = $row->{what} if $row->{what} ne "";
          my $title = $section->{title} =~ s/ \(.*//r;
          $found{"$title: $last, $row->{unit}"} = $row->{median} if defined $row->{median};
          $floor //= $row->{median} if $row->{what} =~ /^(64: )?floor/ && $row->{unit} eq "ns";
        }
      }
    } else {
      my ($before, $after) = @{$run->{floor}}{qw(before_ns after_ns)};
      return unless $before && $after && ($before < 150) == ($after < 150);
      $floor = ($before + $after) / 2;
      $found{"rt_venue p50, ns"} = $run->{rt_venue}{p50_ns};
      my $work = $run->{rt_venue}{p50_ns} - $run->{clock}{stamps_ns};
      $found{"rt_venue p50 less the stamps and the floor, ns"} = $work - $floor;
      if (my $floors = read_json("$build.$pair.$part.floors")) {
        my ($in_step, $out_of_step) = map { $_->{median} } @{$floors->{sections}[0]{rows}};
        return if ($in_step < 150) != ($floor < 150);
        $found{"a line out of step, ns"} = $out_of_step;
        $found{"rt_venue p50 less the stamps and a line out of step, ns"} = $work - $out_of_step;
      }
    }
    return ($floor, \%found);
  }
  for my $part (qw(capacity scan way-1k way-20k way-400k)) {
    my (%of, $mixed, $lost);
    for my $pair (1 .. $pairs) {
      my ($old_floor, $old) = figures("old", $pair, $part);
      my ($new_floor, $new) = figures("new", $pair, $part);
      if (!$old || !$new) { $lost++; next }
      my $place = "";
      if (defined $old_floor) {
        my @place = map { $_ < 150 ? "near" : "far" } $old_floor, $new_floor;
        if ($place[0] ne $place[1]) { $mixed++; next }
        $place = $place[0];
      }
      push @{$of{$place}{$_}}, [$old->{$_}, $new->{$_}] for grep { defined $new->{$_} } keys %$old;
    }
    printf "\n%s%s%s\n", $part, $mixed ? ", $mixed pairs near in one and far in the other" : "", $lost ? ", $lost pairs with a run whose cores moved, or that failed" : "";
    for my $place (sort keys %of) {
      for my $name (sort keys %{$of{$place}}) {
        my @pairs = @{$of{$place}{$name}};
        my @shown = map { my $i = $_; sprintf "%9.2f [%.2f, %.2f]", map { quartile($_, map { $_->[$i] } @pairs) } 2, 1, 3 } 0, 1;
        my @ratios = map { $_->[1] / $_->[0] } grep { $_->[0] > 0 } @pairs;
        printf "  %-5s%-92s %-26s %-26s × %.2f  lower in %d of %d\n", $place, $name, @shown, quartile(2, @ratios), scalar(grep { $_->[1] < $_->[0] } @pairs), scalar @pairs;
      }
    }
  }' "$out/runs" "$(cat "$out/runs/pairs")"
