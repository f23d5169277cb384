package braid.internal.report.chart;

import braid.MimeBundle;
import braid.SyntheticProfiles;
import braid.SyntheticStudy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.stream.IntStream;
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
    int[] powers = {1, 2, 4, 8, 16, 32};
    var model = SyntheticStudy.model(75e6, 28e6, 0.6e6);
    var study = new SyntheticStudy(103e6, 0.008, 12, 7);
    var three = study.of(SyntheticStudy.overlaps(powers, 1, 2, 3), model);
    charts.put("splits-3-streams", three.chart());
    charts.put("heatmap-3-streams", three.heatmap());
    charts.put("splits-1-stream", study.of(SyntheticStudy.overlaps(powers, 1), model).chart());
    charts.put("splits-one", study.of(SyntheticStudy.overlaps(new int[] {4}, 1), model).chart());
    charts.put(
        "splits-losing",
        study.of(SyntheticStudy.overlaps(powers, 1, 2), how -> 103e6 + 2e6 * how.splits()).chart());
    charts.put(
        "splits-noisy",
        new SyntheticStudy(103e6, 0.1, 12, 7)
            .of(SyntheticStudy.overlaps(powers, 1, 2), model)
            .chart());
    int[] dense = IntStream.rangeClosed(1, 64).toArray();
    charts.put("splits-dense", study.of(SyntheticStudy.overlaps(dense, 1), model).chart());
    charts.put(
        "splits-20us",
        new SyntheticStudy(20e3, 0.01, 12, 7)
            .of(SyntheticStudy.overlaps(powers, 1, 2), SyntheticStudy.model(14e3, 6e3, 200))
            .chart());
    charts.put(
        "splits-20s",
        new SyntheticStudy(20e9, 0.01, 12, 7)
            .of(SyntheticStudy.overlaps(powers, 1, 2), SyntheticStudy.model(14e9, 6e9, 2e8))
            .chart());
    System.out.println(three.headline());
    Files.writeString(
        directory.resolve("study.html"), three.display().data().getOrDefault(MimeBundle.HTML, ""));
    Files.writeString(
        directory.resolve("profiles.html"),
        usual.display().data().getOrDefault(MimeBundle.HTML, ""));
    System.out.println(three.display().text());
    System.out.println(usual.display().text());
    for (var chart : charts.entrySet()) {
      Files.write(directory.resolve(chart.getKey() + ".png"), ChartImage.png(chart.getValue()));
      Files.writeString(
          directory.resolve(chart.getKey() + ".svg"), ChartImage.svg(chart.getValue()));
    }
  }
}
