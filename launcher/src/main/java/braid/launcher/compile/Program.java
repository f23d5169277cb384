package braid.launcher.compile;

import braid.launcher.Counted;
import braid.launcher.InputFile;
import braid.launcher.RankClassPath;
import braid.launcher.fanout.StopChecks;
import braid.model.BraidException;
import braid.natives.WholeFolder;
import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.util.JavacTask;
import java.io.File;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.lang.model.element.Modifier;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticListener;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;
import jdk.jshell.spi.ExecutionControl.ClassInstallException;
import jdk.jshell.spi.ExecutionControl.EngineTerminationException;

/// A plain Java program, compiled once for all ranks: a source file and the files that it refers
/// to, which are found by their packages. Its loops have stop checks, like those of a cell.
///
/// @param name name of its first class, whose `main` runs
/// @param folder classes, until the program is closed
public record Program(Path file, String source, String name, Path folder) implements AutoCloseable {
  private static final int MAX_MEBIBYTES = 4;

  /// Lines of an error that show its place: the message, the source and the caret.
  private static final int SHOWN_LINES = 3;

  private static final Pattern ARGUMENTS =
      Pattern.compile("(?:java\\.lang\\.)?String\\s*(?:\\[\\]|\\.\\.\\.)");

  /// Compiles a source file.
  ///
  /// @param classPath jars and folders, besides Braid's own
  /// @param log receives the compiler's errors, with hints
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
          task(compiler, files, _ -> {}, List.of("-proc:none"), file).parse().iterator().next();
      var classes =
          parsed.getTypeDecls().stream()
              .filter(ClassTree.class::isInstance)
              .map(ClassTree.class::cast)
              .toList();
      var packageName = parsed.getPackageName() == null ? "" : parsed.getPackageName() + ".";
      var options = new ArrayList<>(List.of("-proc:none", "-g", "-parameters", "-Xlint:none"));
      options.addAll(List.of("-d", folder.toString(), "-cp", path(classPath)));
      options.addAll(List.of("-sourcepath", root(file, packageName).toString()));
      var errors = new ArrayList<Diagnostic<? extends JavaFileObject>>();
      DiagnosticListener<JavaFileObject> found =
          each -> {
            if (each.getKind() == Diagnostic.Kind.ERROR) {
              errors.add(each);
            }
          };
      if (!task(compiler, files, found, options, file).call()) {
        var name = String.valueOf(file.getFileName()).replaceFirst("\\.java$", "");
        var check = SuggestionCheck.ofProgram(files, options, name);
        explain(errors, parsed, source, file, classPath, check, log);
        throw new BraidException("%s does not compile; the errors are above".formatted(file));
      }
      requireMain(file, classes);
      addStopChecks(folder);
      return new Program(file, source, packageName + classes.getFirst().getSimpleName(), folder);
    }
  }

  private static JavacTask task(
      JavaCompiler compiler,
      StandardJavaFileManager files,
      DiagnosticListener<JavaFileObject> found,
      List<String> options,
      Path file) {
    return (JavacTask)
        compiler.getTask(null, files, found, options, null, files.getJavaFileObjects(file));
  }

  /// Writes the compiler's errors, each with the hint that a cell would get.
  private static void explain(
      List<Diagnostic<? extends JavaFileObject>> errors,
      CompilationUnitTree parsed,
      String source,
      Path file,
      List<Path> classPath,
      SuggestionCheck check,
      Writer log)
      throws IOException {
    try (var compiler = new CellCompiler(new LocalExecutionControl())) {
      classPath.forEach(entry -> compiler.shell().addToClasspath(entry.toString()));
      parsed.getImports().forEach(each -> compiler.eval(each.toString()));
      var hints = compiler.hints(check);
      for (var error : errors) {
        var text = error.toString().lines().toList();
        boolean isHere =
            error.getPosition() >= 0
                && error.getSource() != null
                && error.getSource().getName().equals(file.toString());
        var rejection =
            isHere ? Optional.of(Rejection.of(error, source)) : Optional.<Rejection>empty();
        var constructor = rejection.flatMap(hints::forConstructor);
        if (constructor.isPresent() && text.size() > SHOWN_LINES) {
          var place = text.getFirst().replaceFirst("error: .*", "error: ");
          text =
              Stream.concat(
                      Stream.of(place + constructor.get()), text.subList(1, SHOWN_LINES).stream())
                  .toList();
        }
        for (var line : text) {
          log.write(line + System.lineSeparator());
        }
        if (constructor.isEmpty()) {
          var hint = rejection.flatMap(hints::of);
          log.write(hint.map(words -> "  " + words + System.lineSeparator()).orElse(""));
        }
      }
      log.write(Counted.of(errors.size(), "error") + System.lineSeparator());
    }
  }

  private static void requireMain(Path file, List<ClassTree> classes) {
    if (classes.isEmpty()) {
      throw new BraidException(
          "%s must declare a class with a main method but declares none".formatted(file));
    }
    var first = classes.getFirst();
    boolean hasMain =
        first.getMembers().stream()
            .anyMatch(member -> member instanceof MethodTree method && isMain(method));
    if (!hasMain) {
      throw new BraidException(
          "%s must have a method main but has none; add `public static void main(String[] arguments) { … }` to it"
              .formatted(first.getSimpleName()));
    }
  }

  private static boolean isMain(MethodTree method) {
    var parameters = method.getParameters();
    return method.getName().contentEquals("main")
        && "void".equals(String.valueOf(method.getReturnType()))
        && !method.getModifiers().getFlags().contains(Modifier.PRIVATE)
        && (parameters.isEmpty()
            || (parameters.size() == 1
                && ARGUMENTS.matcher(parameters.getFirst().getType().toString()).matches()));
  }

  private static String path(List<Path> classPath) {
    return Stream.concat(Stream.of(RankClassPath.text()), classPath.stream().map(Path::toString))
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
