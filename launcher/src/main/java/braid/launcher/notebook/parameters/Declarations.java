package braid.launcher.notebook.parameters;

import com.sun.source.tree.BlockTree;
import com.sun.source.tree.Tree;
import com.sun.source.tree.VariableTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePath;
import com.sun.source.util.TreePathScanner;
import com.sun.source.util.Trees;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import javax.lang.model.type.ArrayType;
import javax.lang.model.type.DeclaredType;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/// The variables that a `parameters` cell declares, with the types that the compiler gives them.
final class Declarations {
  /// Accepted by JShell at the top of a cell, but not by javac in a method body.
  private static final Pattern NOT_IN_A_METHOD =
      Pattern.compile(
          "(?m)^\\s*(%.*$|import\\s[^;]*;|((public|protected|private|static|final)\\s+)+)");

  /// Types are needed even if the cell has errors. Only types of the JDK are settable.
  private static final List<String> OPTIONS =
      List.of("-proc:none", "--should-stop=ifError=FLOW", "--class-path", "");

  private static final JavaType ANYTHING = new JavaType.Anything("Object");

  private Declarations() {}

  private static final class Source extends SimpleJavaFileObject {
    private final String text;

    Source(String text) {
      super(URI.create("string:///Parameters.java"), Kind.SOURCE);
      this.text = text;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return text;
    }
  }

  /// A variable with its type, the source of its value (empty if it has none) and its comment: the
  /// one after it on its line, or else those directly above.
  record Declared(JavaType type, String value, String comment) {}

  /// Returns types by name, in order. A statement that does not parse declares nothing; running the
  /// cell reports it.
  static Map<String, JavaType> of(String cell) {
    var types = new LinkedHashMap<String, JavaType>();
    described(cell).forEach((name, declared) -> types.put(name, declared.type()));
    return types;
  }

  static Map<String, Declared> described(String cell) {
    var body = NOT_IN_A_METHOD.matcher(cell).replaceAll("");
    var source =
        new Source("import java.util.*; class Parameters { void cell() {\n" + body + "\n;} }");
    var compiler = ToolProvider.getSystemJavaCompiler();
    var task =
        (JavacTask)
            compiler.getTask(
                null,
                null,
                new DiagnosticCollector<JavaFileObject>(),
                OPTIONS,
                null,
                List.of(source));
    var found = new LinkedHashMap<String, Declared>();
    try {
      var variables = new LinkedHashMap<TreePath, String>();
      for (var unit : task.parse()) {
        new Variables(variables).scan(unit, null);
      }
      task.analyze();
      var trees = Trees.instance(task);
      variables.forEach(
          (path, type) -> {
            var text = new DeclarationText(path.getCompilationUnit(), trees, source.text);
            var variable = (VariableTree) path.getLeaf();
            found.put(
                variable.getName().toString(),
                new Declared(
                    Optional.ofNullable(trees.getElement(path))
                        .flatMap(element -> settable(element.asType()))
                        .orElseGet(() -> new JavaType.Unsettable(type)),
                    text.value(variable),
                    text.comment(variable)));
          });
    } catch (IOException e) {
      throw new UncheckedIOException("reading a text in memory failed", e);
    } catch (IllegalStateException | StackOverflowError e) {
      return Map.of(); // nested deeper than the compiler can follow
    }
    return found;
  }

  /// Collects the variables of a method body with their types as written. Nested blocks are left
  /// out.
  private static final class Variables extends TreePathScanner<@Nullable Void, @Nullable Void> {
    private final Map<TreePath, String> found;

    Variables(Map<TreePath, String> found) {
      this.found = found;
    }

    @Override
    public @Nullable Void visitBlock(BlockTree body, @Nullable Void none) {
      for (var statement : body.getStatements()) {
        if (statement instanceof VariableTree variable) {
          // null since JDK 26, an invisible `var` before
          Tree type = variable.getType();
          found.put(
              new TreePath(getCurrentPath(), variable), type == null ? "var" : type.toString());
        }
      }
      return null;
    }
  }

  private static Optional<JavaType> settable(TypeMirror type) {
    return switch (type.getKind()) {
      case ARRAY -> settable(((ArrayType) type).getComponentType()).map(JavaType.ArrayOf::new);
      case DECLARED -> declared((DeclaredType) type);
      default -> plain(type.toString());
    };
  }

  private static Optional<JavaType> declared(DeclaredType type) {
    var arguments = type.getTypeArguments();
    // the type of elements of several types
    var element =
        arguments.isEmpty() || arguments.getLast().getKind() == TypeKind.INTERSECTION
            ? Optional.of(ANYTHING)
            : settable(arguments.getLast());
    return switch (type.asElement().toString()) {
      case "java.lang.Object" -> Optional.of(ANYTHING);
      case "java.util.List" -> element.map(JavaType.ListOf::new);
      case "java.util.Map" ->
          element
              .filter(_ -> arguments.isEmpty() || isString(arguments.getFirst()))
              .map(JavaType.MapOf::new);
      case String name -> plain(name.replace("java.lang.", ""));
    };
  }

  private static boolean isString(TypeMirror type) {
    return type.toString().equals("java.lang.String");
  }

  private static Optional<JavaType> plain(String name) {
    return JavaType.Plain.Kind.all()
        .filter(type -> type.source().equals(name))
        .findFirst()
        .map(type -> type);
  }
}
