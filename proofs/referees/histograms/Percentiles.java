// Prints the percentiles of a histograms.hlog as org.hdrhistogram reads them: tag, count, min, p50, p90, p99, p99.9, max.
import java.io.File;
import java.util.StringJoiner;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

class Percentiles {
    public static void main(String[] arguments) throws Exception {
        var reader = new HistogramLogReader(new File(arguments[0]));
        while (reader.nextIntervalHistogram() instanceof Histogram histogram) {
            var line = new StringJoiner(",");
            line.add(histogram.getTag());
            line.add(Long.toString(histogram.getTotalCount()));
            line.add(Long.toString(histogram.getMinValue()));
            for (double percentile : new double[] {50, 90, 99, 99.9}) {
                line.add(Long.toString(histogram.getValueAtPercentile(percentile)));
            }
            System.out.println(line.add(Long.toString(histogram.getMaxValue())));
        }
    }
}
