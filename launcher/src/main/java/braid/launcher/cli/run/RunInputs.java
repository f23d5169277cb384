package braid.launcher.cli.run;

import braid.launcher.OutputFile;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.notebook.EarlierRun;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.ParameterCell;
import braid.launcher.notebook.check.Recording;
import braid.launcher.notebook.parameters.Parameters;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Notebooks of a run and their output files. All mistakes in them are found here, before the first
/// one runs.
///
/// @param notes remarks for the user
public record RunInputs(List<RunInput> all, List<String> notes) {
  public RunInputs {
    all = List.copyOf(all);
    notes = List.copyOf(notes);
  }

  /// @param files at least one
  /// @param output file for one notebook, directory for several; by default the folder of each run
  /// @param check true to compare each with its recorded outputs
  /// @param record true to store the outputs in the files that are run
  /// @throws BraidException if a file, a parameter or an output file is wrong
  public static RunInputs of(
      List<Path> files,
      @Nullable Path output,
      Parameters parameters,
      boolean check,
      boolean record) {
    if (record && (check || !parameters.isEmpty())) {
      throw new BraidException(
          "--record stores the outputs of a notebook as it is but %s was given too; leave it out"
              .formatted(check ? "--check" : "a parameter"));
    }
    var notebooks = files.stream().map(RunInputs::read).toList();
    var outputs = outputs(files, output);
    var notes = ParameterCell.inject(parameters, notebooks);
    var inputs = new ArrayList<RunInput>();
    for (int i = 0; i < notebooks.size(); i++) {
      var notebook = notebooks.get(i);
      inputs.add(
          new RunInput(
              notebook,
              files.get(i),
              outputs.get(i),
              check ? Optional.of(Recording.of(notebook)) : Optional.empty(),
              record));
    }
    return new RunInputs(inputs, notes);
  }

  /// Returns a notebook that is rerun, with its parameters.
  ///
  /// @param original file of the first run
  public static RunInputs again(Notebook notebook, Path original, @Nullable Path output) {
    var saved = outputs(List.of(original), output).getFirst();
    return new RunInputs(
        List.of(new RunInput(notebook, original, saved, Optional.empty(), false)), List.of());
  }

  private static Notebook read(Path file) {
    var notebook = Notebook.read(file);
    notebook.requireJava();
    EarlierRun.requireWhole(notebook);
    return notebook;
  }

  private static List<Optional<Path>> outputs(List<Path> files, @Nullable Path output) {
    if (output == null) {
      var runs = WorkingDirectory.called().resolve("runs");
      var _ =
          OutputFile.directory(
              "without -o, the folder of the runs",
              Files.exists(runs) ? runs : WorkingDirectory.called(),
              "outputs are kept");
      return files.stream().map(_ -> Optional.<Path>empty()).toList();
    }
    var outputs =
        files.size() == 1
            ? List.of(OutputFile.writable("-o", output))
            : inDirectory(files, OutputFile.directory("-o", output, "several notebooks are run"));
    for (var saved : outputs) {
      files.stream().filter(file -> isSame(file, saved)).findFirst().ifPresent(RunInputs::refuse);
    }
    return outputs.stream().map(Optional::of).toList();
  }

  private static void refuse(Path file) {
    throw new BraidException(
        "-o must be another file than the notebook but %s is one that is run; a notebook that is run is not changed: choose another name"
            .formatted(file));
  }

  private static boolean isSame(Path file, Path saved) {
    try {
      return Files.exists(saved) && Files.isSameFile(file, saved);
    } catch (IOException e) {
      return file.toAbsolutePath().normalize().equals(saved.toAbsolutePath().normalize());
    }
  }

  private static List<Path> inDirectory(List<Path> files, Path directory) {
    var outputs = new ArrayList<Path>();
    var taken = new HashMap<Path, Path>();
    for (var file : files) {
      var output = directory.resolve(RunInput.outputName(file));
      var owner = taken.putIfAbsent(output, file);
      if (owner != null) {
        throw new BraidException(
            "notebooks of one run must have names of their own but %s and %s would both be saved as %s; run them one by one"
                .formatted(owner, file, output));
      }
      outputs.add(OutputFile.writable("-o", output));
    }
    return outputs;
  }
}
