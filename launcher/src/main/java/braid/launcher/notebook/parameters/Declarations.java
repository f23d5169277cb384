package braid.launcher.notebook.parameters;

import com.sun.source.tree.ArrayTypeTree;
import com.sun.source.tree.BinaryTree;
import com.sun.source.tree.ClassTree;
import com.sun.source.tree.ExpressionTree;
import com.sun.source.tree.LiteralTree;
import com.sun.source.tree.MethodInvocationTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.tree.NewArrayTree;
import com.sun.source.tree.ParameterizedTypeTree;
import com.sun.source.tree.ParenthesizedTree;
import com.sun.source.tree.Tree;
import com.sun.source.tree.UnaryTree;
import com.sun.source.tree.VariableTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.Trees;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/// The variables that a `parameters` cell declares, with their types, as the compiler's own parser
/// sees them. The type of a `var` is that of its literal.
final class Declarations {
  /// What JShell takes at the top of a cell and a method body does not.
  private static final Pattern NOT_IN_A_METHOD =
      Pattern.compile(
          "(?m)^\\s*(%.*$|import\\s[^;]*;|((public|protected|private|static|final)\\s+)+)");

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

  /// A variable with its type, its value's source (empty where it has none) and the comment that
  /// explains it: the one after it on its line, else the ones right above.
  record Declared(JavaType type, String value, String comment) {}

  /// In order. What does not parse declares nothing: running the cell says why.
  static Map<String, JavaType> of(String cell) {
    var types = new LinkedHashMap<String, JavaType>();
    described(cell).forEach((name, declared) -> types.put(name, declared.type()));
    return types;
  }

  static Map<String, Declared> described(String cell) {
    var body = NOT_IN_A_METHOD.matcher(cell).replaceAll("");
    var source = new Source("class Parameters { void cell() {\n" + body + "\n;} }");
    var compiler = ToolProvider.getSystemJavaCompiler();
    var task =
        (JavacTask)
            compiler.getTask(
                null,
                null,
                new DiagnosticCollector<JavaFileObject>(),
                List.of("-proc:none"),
                null,
                List.of(source));
    var found = new LinkedHashMap<String, Declared>();
    try {
      for (var unit : task.parse()) {
        var reader = new DeclarationText(unit, Trees.instance(task), source.text);
        for (var type : unit.getTypeDecls()) {
          if (type instanceof ClassTree declared) {
            collect(declared, reader, found);
          }
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException("reading a text in memory failed", e);
    } catch (IllegalStateException | StackOverflowError e) {
      return Map.of(); // nested deeper than the parser can follow
    }
    return found;
  }

  private static void collect(
      ClassTree declared, DeclarationText reader, Map<String, Declared> found) {
    for (var member : declared.getMembers()) {
      if (member instanceof MethodTree method && method.getBody() != null) {
        for (var statement : method.getBody().getStatements()) {
          if (statement instanceof VariableTree variable) {
            found.put(
                variable.getName().toString(),
                new Declared(type(variable), reader.value(variable), reader.comment(variable)));
          }
        }
      }
    }
  }

  private static JavaType type(VariableTree variable) {
    // null since JDK 26, an invisible `var` before
    Tree declared = variable.getType();
    if (declared == null || declared.toString().equals("var")) {
      return inferred(variable.getInitializer());
    }
    return named(declared);
  }

  private static JavaType named(Tree type) {
    if (type instanceof ArrayTypeTree array) {
      return arrayOf(named(array.getType()), type.toString());
    }
    if (type instanceof ParameterizedTypeTree generic) {
      var arguments = generic.getTypeArguments();
      if (arguments.isEmpty()) {
        return new JavaType.Unsettable(type.toString());
      }
      var last = named(arguments.getLast());
      if (last instanceof JavaType.Unsettable) {
        return new JavaType.Unsettable(type.toString());
      }
      var container = simpleName(generic.getType());
      if (container.equals("List")) {
        return new JavaType.ListOf(last);
      }
      if (container.equals("Map") && simpleName(arguments.getFirst()).equals("String")) {
        return new JavaType.MapOf(last);
      }
      return new JavaType.Unsettable(type.toString());
    }
    var anything = new JavaType.Anything("Object");
    return switch (simpleName(type)) {
      case "List" -> new JavaType.ListOf(anything);
      case "Map" -> new JavaType.MapOf(anything);
      case "Object" -> anything;
      default -> plain(simpleName(type));
    };
  }

  private static JavaType plain(String name) {
    return JavaType.Plain.Kind.all()
        .filter(type -> type.source().equals(name))
        .findFirst()
        .<JavaType>map(type -> type)
        .orElse(new JavaType.Unsettable(name));
  }

  private static JavaType arrayOf(JavaType element, String source) {
    return element instanceof JavaType.Unsettable
        ? new JavaType.Unsettable(source)
        : new JavaType.ArrayOf(element);
  }

  private static String simpleName(Tree type) {
    var name = type.toString();
    return name.substring(name.lastIndexOf('.') + 1);
  }

  private static JavaType inferred(@Nullable ExpressionTree value) {
    var unknown = new JavaType.Unsettable("var");
    return switch (value) {
      case null -> unknown;
      case LiteralTree literal -> literal(literal);
      case ParenthesizedTree inner -> inferred(inner.getExpression());
      case UnaryTree signed -> inferred(signed.getExpression());
      case BinaryTree sum -> wider(inferred(sum.getLeftOperand()), inferred(sum.getRightOperand()));
      case NewArrayTree array when array.getType() != null ->
          arrayOf(dimensions(array), array.toString());
      case MethodInvocationTree call -> collection(call);
      default -> unknown;
    };
  }

  private static JavaType literal(LiteralTree literal) {
    return switch (literal.getKind()) {
      case INT_LITERAL -> plain("int");
      case LONG_LITERAL -> plain("long");
      case FLOAT_LITERAL -> plain("float");
      case DOUBLE_LITERAL -> plain("double");
      case BOOLEAN_LITERAL -> plain("boolean");
      case STRING_LITERAL -> plain("String");
      default -> new JavaType.Unsettable("var");
    };
  }

  /// The type of arithmetic on two literals.
  private static JavaType wider(JavaType left, JavaType right) {
    return left instanceof JavaType.Plain a && right instanceof JavaType.Plain b
        ? a.kind().compareTo(b.kind()) >= 0 ? a : b
        : new JavaType.Unsettable("var");
  }

  /// The element type of `new int[3][4]`: each length after the first is one more dimension.
  private static JavaType dimensions(NewArrayTree array) {
    var element = named(array.getType());
    for (int i = 1; i < array.getDimensions().size(); i++) {
      element = arrayOf(element, array.toString());
    }
    return element;
  }

  /// `List.of(1, 2)` and `Map.of("a", 1)`.
  private static JavaType collection(MethodInvocationTree call) {
    var method = call.getMethodSelect().toString();
    if (method.endsWith("List.of")) {
      return new JavaType.ListOf(common(call.getArguments()));
    }
    if (method.endsWith("Map.of")) {
      var arguments = call.getArguments();
      return new JavaType.MapOf(
          common(
              IntStream.range(0, arguments.size() / 2)
                  .<ExpressionTree>mapToObj(i -> arguments.get(2 * i + 1))
                  .toList()));
    }
    return new JavaType.Unsettable("var");
  }

  private static JavaType common(List<? extends ExpressionTree> values) {
    var types = values.stream().map(Declarations::inferred).distinct().toList();
    return types.size() == 1 && types.getFirst() instanceof JavaType.Plain(var kind, var boxed)
        ? new JavaType.Plain(kind, true)
        : new JavaType.Anything("Object");
  }
}
