package braid.launcher.cli.run;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.check.Recording;
import java.nio.file.Path;
import java.util.Optional;

/// A checked notebook with its parameters, ready to run.
///
/// @param file source file
/// @param recording recorded outputs to compare with afterwards
public record RunInput(Notebook notebook, Path file, Path output, Optional<Recording> recording) {}
