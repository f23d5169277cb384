package braid.launcher.compile;

import braid.launcher.InputFile;
import braid.launcher.fanout.StopChecks;
import braid.model.BraidException;
import braid.natives.WholeFolder;
import com.sun.source.tree.ClassTree;
import com.sun.source.util.JavacTask;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticListener;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;
import jdk.jshell.spi.ExecutionControl.ClassInstallException;
import jdk.jshell.spi.ExecutionControl.EngineTerminationException;
import org.jspecify.annotations.Nullable;

/// A plain Java program, compiled once for all ranks: a source file and the files that it refers
/// to, which are found by their packages. Its loops have stop checks, like those of a cell.
///
/// @param name name of its first class, whose `main` runs
/// @param folder classes, until the program is closed
public record Program(Path file, String source, String name, Path folder) implements AutoCloseable {
  private static final int MAX_MEBIBYTES = 4;

  /// More classes with one name are no hint.
  private static final int MOST_IMPORTS = 3;

  /// Compiles a source file.
  ///
  /// @param classPath jars and folders, besides Braid's own
  /// @param log receives the compiler's errors
  public static Program compile(Path file, List<Path> classPath, Writer log) throws IOException {
    String source;
    try {
      source = InputFile.read(file, MAX_MEBIBYTES);
    } catch (IOException e) {
      throw new BraidException(
          "the program must be a file of Java but %s %s; check the path"
              .formatted(file, Files.exists(file) ? InputFile.reason(e) : "does not exist"),
          e);
    }
    var folder = Files.createTempDirectory("braid-program");
    try {
      return compile(file, source, classPath, folder, log);
    } catch (IOException | RuntimeException | Error e) {
      WholeFolder.delete(folder);
      throw e;
    }
  }

  private static Program compile(
      Path file, String source, List<Path> classPath, Path folder, Writer log) throws IOException {
    var compiler = ToolProvider.getSystemJavaCompiler();
    try (var files = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8)) {
      var parsed =
          task(compiler, log, files, null, List.of("-proc:none"), file).parse().iterator().next();
      var classes =
          parsed.getTypeDecls().stream()
              .filter(ClassTree.class::isInstance)
              .map(type -> ((ClassTree) type).getSimpleName().toString())
              .toList();
      var packageName = parsed.getPackageName() == null ? "" : parsed.getPackageName() + ".";
      var options = new ArrayList<>(List.of("-proc:none", "-g", "-parameters", "-Xlint:none"));
      options.addAll(List.of("-d", folder.toString(), "-cp", path(classPath)));
      options.addAll(List.of("-sourcepath", root(file, packageName).toString()));
      if (!task(compiler, log, files, null, options, file).call()) {
        var unknown = new LinkedHashSet<String>();
        task(
                compiler,
                log,
                files,
                error -> unknownType(error).ifPresent(unknown::add),
                options,
                file)
            .analyze();
        for (var type : unknown) {
          log.write(missingImport(type));
        }
        throw new BraidException("%s does not compile; the errors are above".formatted(file));
      }
      if (classes.isEmpty()) {
        throw new BraidException(
            "%s must declare a class with a main method but declares none".formatted(file));
      }
      addStopChecks(folder);
      return new Program(file, source, packageName + classes.getFirst(), folder);
    }
  }

  /// @param errors receives the errors instead of the log
  private static JavacTask task(
      JavaCompiler compiler,
      Writer log,
      StandardJavaFileManager files,
      @Nullable DiagnosticListener<JavaFileObject> errors,
      List<String> options,
      Path file) {
    return (JavacTask)
        compiler.getTask(log, files, errors, options, null, files.getJavaFileObjects(file));
  }

  /// Returns the name that an error does not find, if it begins like that of a type.
  private static Optional<String> unknownType(Diagnostic<? extends JavaFileObject> error) {
    if (!error.getCode().startsWith("compiler.err.cant.resolve") || error.getSource() == null) {
      return Optional.empty();
    }
    try {
      var name =
          error
              .getSource()
              .getCharContent(true)
              .subSequence((int) error.getStartPosition(), (int) error.getEndPosition())
              .toString();
      boolean isType =
          name.chars().allMatch(Character::isJavaIdentifierPart)
              && Character.isUpperCase(name.charAt(0));
      return isType ? Optional.of(name) : Optional.empty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns a line with the imports of that name; empty if there are none, or too many to choose.
  private static String missingImport(String type) {
    var found = PublicApi.named(type, each -> List.of(each + "." + type));
    return found.isEmpty() || found.size() > MOST_IMPORTS
        ? ""
        : "%s needs an import: %s%n"
            .formatted(
                type,
                found.stream().map("import %s;"::formatted).collect(Collectors.joining(" or ")));
  }

  private static String path(List<Path> classPath) {
    return Stream.concat(
            Stream.of(System.getProperty("java.class.path")),
            classPath.stream().map(Path::toString))
        .collect(Collectors.joining(File.pathSeparator));
  }

  /// Returns the folder in which the file's package begins.
  private static Path root(Path file, String packageName) {
    var root = file.toAbsolutePath().normalize().getParent();
    for (int dot = packageName.indexOf('.'); dot >= 0; dot = packageName.indexOf('.', dot + 1)) {
      root = root == null ? null : root.getParent();
    }
    return root == null ? Path.of("/") : root;
  }

  private static void addStopChecks(Path folder) throws IOException {
    try (var all = Files.walk(folder)) {
      var classes = new ArrayList<ClassBytecodes>();
      for (var file : all.filter(Files::isRegularFile).toList()) {
        var name = folder.relativize(file).toString().replaceFirst("\\.class$", "");
        classes.add(new ClassBytecodes(name.replace('/', '.'), Files.readAllBytes(file)));
      }
      for (var woven : new StopChecks().weave(classes.toArray(ClassBytecodes[]::new))) {
        Files.write(folder.resolve(woven.name().replace('.', '/') + ".class"), woven.bytecodes());
      }
    } catch (ClassInstallException | EngineTerminationException e) {
      throw new IllegalStateException("stop checks could not be woven into the program", e);
    }
  }

  @Override
  public void close() throws IOException {
    WholeFolder.delete(folder);
  }
}
