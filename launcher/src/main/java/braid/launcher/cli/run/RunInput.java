package braid.launcher.cli.run;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.check.Recording;
import java.nio.file.Path;
import java.util.Optional;

/// A checked notebook with its parameters, ready to run.
///
/// @param file source file
/// @param saved output file, if one was named
/// @param recording recorded outputs to compare with afterwards
/// @param records true if the outputs of a complete run are stored in the source file
public record RunInput(
    Notebook notebook,
    Path file,
    Optional<Path> saved,
    Optional<Recording> recording,
    boolean records) {
  /// Returns the output file: by default in the folder of the run, so that a run leaves nothing
  /// beside `runs/`.
  public Path output(Path directory) {
    return saved.orElseGet(() -> directory.resolve(outputName(file)));
  }

  static String outputName(Path file) {
    return String.valueOf(file.getFileName()).replaceFirst("\\.ipynb$", "") + ".out.ipynb";
  }
}
