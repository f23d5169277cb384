package braid.launcher.bundle;

import braid.launcher.experiment.GitState;
import braid.natives.WholeFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/// Builds a bundle: a runtime image, the jars, the script, the notebooks.
///
/// @param home checkout with the script and the notebooks
/// @param classPath class path of this process
/// @param manual manual pages by file name
/// @param progress receives each step, and each part that the bundle lacks
public record Bundle(
    Path home, List<Path> classPath, Map<String, String> manual, Consumer<String> progress) {
  /// The file with the revision that a bundle was built from.
  public static final String REVISION = "REVISION";

  /// The folder that unpacking makes. Not `braid`: in a checkout that is the script.
  static final String FOLDER = "braid-bundle";

  private static final List<String> PAGES =
      List.of("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE");

  public Bundle {
    classPath = List.copyOf(classPath);
    manual = Map.copyOf(manual);
  }

  /// Writes the archive atomically.
  ///
  /// @return a description of the archive
  public String pack(Path file) throws IOException, InterruptedException {
    return pack(file, Archive.SMALLEST);
  }

  String pack(Path file, Archive archive) throws IOException, InterruptedException {
    var work = Files.createTempDirectory(FOLDER);
    try {
      var folder = Files.createDirectory(work.resolve(FOLDER));
      assemble(folder);
      progress.accept("compressing, which takes a minute or two");
      long bytes = archive.pack(folder, file);
      return "%s, %s; there: tar xf %s && %s/bin/braid doctor"
          .formatted(file, Archive.mib(bytes), file.getFileName(), FOLDER);
    } finally {
      WholeFolder.delete(work);
    }
  }

  private void assemble(Path folder) throws IOException {
    progress.accept("linking a Java runtime");
    var jre = folder.resolve("jre");
    RuntimeImage.link(jre);
    BundledFonts.copy(jre).ifPresent(progress);
    progress.accept("copying the jars");
    LeanJars.copy(classPath, folder.resolve("lib"));
    Files.copy(home.resolve("braid"), folder.resolve("braid"));
    var bin = Files.createDirectory(folder.resolve("bin"));
    Files.createSymbolicLink(bin.resolve("braid"), Path.of("..", "braid"));
    for (var page : PAGES) {
      Files.copy(home.resolve(page), folder.resolve(page));
    }
    docs(folder);
    var revision = GitState.revision(home);
    if (revision.isPresent()) {
      Files.writeString(folder.resolve(REVISION), revision.get() + "\n");
    }
    notebooks(Files.createDirectory(folder.resolve("notebooks")));
    // man finds pages in share/man beside a bin that is on the path.
    var pages = Files.createDirectories(folder.resolve("share/man/man1"));
    for (var page : manual.entrySet()) {
      Files.writeString(pages.resolve(page.getKey()), page.getValue());
    }
  }

  /// Copies the pages that the README links to.
  private void docs(Path into) throws IOException {
    try (var files = Files.walk(home.resolve("docs"))) {
      for (var file : files.toList()) {
        Files.copy(file, into.resolve(home.relativize(file).toString()));
      }
    }
  }

  /// Copies the notebooks, without outputs of earlier runs.
  private void notebooks(Path into) throws IOException {
    try (var files =
        Files.newDirectoryStream(
            home.resolve("notebooks"),
            file ->
                file.toString().matches(".*(?<!\\.out)\\.ipynb") && Files.isRegularFile(file))) {
      for (var notebook : files) {
        Files.copy(notebook, into.resolve(notebook.getFileName().toString()));
      }
    }
  }
}
