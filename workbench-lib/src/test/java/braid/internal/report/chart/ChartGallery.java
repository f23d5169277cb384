package braid.internal.report.chart;

import braid.SyntheticProfiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import org.jfree.chart.JFreeChart;

/// Draws every kind of chart in its ordinary and its extreme cases, to be looked at by a person:
/// `ChartGallery DIRECTORY`.
public final class ChartGallery {
  private ChartGallery() {}

  public static void main(String[] args) throws IOException {
    var directory = Files.createDirectories(Path.of(args[0]));
    var charts = new LinkedHashMap<String, JFreeChart>();
    var usual = new SyntheticProfiles(4, 5, 8, 2, 3_000_000, 11_000_000).set();
    charts.put("timeline-4x2x8", usual.timeline());
    charts.put("breakdown-4", usual.breakdown());
    charts.put(
        "timeline-8x3x64", new SyntheticProfiles(8, 2, 64, 3, 300_000, 700_000).set().timeline());
    charts.put("timeline-1x1x1", new SyntheticProfiles(1, 1, 1, 1, 8_000, 12_000).set().timeline());
    var slow = new SyntheticProfiles(2, 3, 4, 1, 2_500_000_000L, 4_500_000_000L).set();
    charts.put("timeline-20s", slow.timeline());
    charts.put("breakdown-1", new SyntheticProfiles(1, 1, 1, 1, 8_000, 12_000).set().breakdown());
    charts.put(
        "breakdown-8", new SyntheticProfiles(8, 2, 64, 3, 300_000, 700_000).set().breakdown());
    for (var chart : charts.entrySet()) {
      Files.write(directory.resolve(chart.getKey() + ".png"), ChartImage.png(chart.getValue()));
      Files.writeString(
          directory.resolve(chart.getKey() + ".svg"), ChartImage.svg(chart.getValue()));
    }
  }
}
