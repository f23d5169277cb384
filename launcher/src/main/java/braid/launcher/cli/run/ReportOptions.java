package braid.launcher.cli.run;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// Options for the files of a run besides its notebooks.
public final class ReportOptions {
  @Option(
      names = "--junit",
      paramLabel = "FILE",
      description =
          "Writes a JUnit XML report for CI: one suite per notebook, one test case per cell.")
  private @Nullable Path junit;

  @Option(
      names = "--report",
      paramLabel = "FILE",
      description =
          "Writes one HTML page with everything: failures, findings, environment, cells, charts.")
  private @Nullable Path report;

  @Option(
      names = "--summary",
      paramLabel = "FILE",
      description =
          "Writes a summary in Markdown for CI pages: verdict, headlines of the studies, charts.")
  private @Nullable Path summary;

  /// Returns the reports, after checking that they can be written.
  public RunReports of(RunInputs inputs) {
    return new RunReports(junit, report, summary, inputs);
  }
}
