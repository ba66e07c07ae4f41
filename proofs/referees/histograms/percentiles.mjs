// Prints the percentiles of a histograms.hlog as hdr-histogram-js reads them: tag, count, min, p50, p90, p99, p99.9, max.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// Packages are looked up from the working directory.
const hdr = createRequire(`${process.cwd()}/`)("hdr-histogram-js");
const reader = new hdr.HistogramLogReader(readFileSync(process.argv[2], "utf8"));
for (let histogram; (histogram = reader.nextIntervalHistogram()); ) {
  const percentiles = [50, 90, 99, 99.9].map((percentile) => histogram.getValueAtPercentile(percentile));
  console.log([histogram.tag, histogram.totalCount, histogram.minNonZeroValue, ...percentiles, histogram.maxValue].join(","));
}
