package braid.launcher.cli.run;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.check.Recording;
import java.nio.file.Path;
import java.util.Optional;

/// A notebook to run: read, found in order, its parameters in it.
///
/// @param file where it was read
/// @param recording what it is to be held to afterwards
public record RunInput(Notebook notebook, Path file, Path output, Optional<Recording> recording) {}
