package braid.launcher.editing;

import com.sun.source.tree.ClassTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.tree.VariableTree;
import com.sun.source.util.DocTrees;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePathScanner;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/// Doc comments of Braid's own API, read from its sources, which are packaged with its classes: the
/// compiler finds only the JDK's comments.
final class ApiDocs {
  /// Packages whose types notebooks name; type names are unique across them.
  private static final List<String> SOURCES =
      List.of(
          "/sources/braid/",
          "/sources/braid/evidence/",
          "/sources/braid/export/",
          "/sources/braid/model/",
          "/sources/braid/schedule/",
          "/sources/braid/schedule/simulation/",
          "/sources/braid/shapes/",
          "/sources/braid/selftest/");

  private final Map<String, Map<String, String>> byType = new ConcurrentHashMap<>();

  /// Returns the comment of a signature; without known parameters, that of the first overload with
  /// a comment.
  Optional<String> of(Signature signature) {
    var comments = byType.computeIfAbsent(signature.outermost(), ApiDocs::read);
    return Optional.ofNullable(comments.get(signature.key()))
        .or(() -> Optional.ofNullable(comments.get(signature.key().replaceAll("\\(.*", "("))));
  }

  private static Map<String, String> read(String type) {
    for (var folder : SOURCES) {
      try (var stream = ApiDocs.class.getResourceAsStream(folder + type + ".java")) {
        if (stream != null) {
          return comments(type, new String(stream.readAllBytes(), StandardCharsets.UTF_8));
        }
      } catch (IOException e) {
        throw new UncheckedIOException("the sources of " + type + " cannot be read", e);
      }
    }
    return Map.of();
  }

  private static Map<String, String> comments(String type, String source) throws IOException {
    var file =
        new SimpleJavaFileObject(
            URI.create("string:///" + type + ".java"), JavaFileObject.Kind.SOURCE) {
          @Override
          public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return source;
          }
        };
    var compiler = ToolProvider.getSystemJavaCompiler();
    if (!(compiler.getTask(null, null, _ -> {}, List.of("-proc:none"), null, List.of(file))
        instanceof JavacTask task)) {
      return Map.of();
    }
    var scanner = new Comments(DocTrees.instance(task));
    for (var unit : task.parse()) {
      scanner.scan(unit, "");
    }
    return scanner.found;
  }

  /// Collects comments by `Outer.Inner.name(Type,Type)`. Constructors have the name of their class.
  private static final class Comments extends TreePathScanner<@Nullable Void, String> {
    final Map<String, String> found = new HashMap<>();
    private final DocTrees trees;

    Comments(DocTrees trees) {
      this.trees = trees;
    }

    @Override
    public @Nullable Void visitClass(ClassTree tree, String outer) {
      var name = outer + tree.getSimpleName();
      keep(name);
      return super.visitClass(tree, name + ".");
    }

    @Override
    public @Nullable Void visitMethod(MethodTree tree, String outer) {
      var types = tree.getParameters().stream().map(p -> String.valueOf(p.getType())).toList();
      var name =
          tree.getName().contentEquals("<init>")
              ? outer.substring(0, outer.length() - 1)
              : outer + tree.getName();
      keep(Signature.key(name, types));
      keepFirst(name + "(");
      return null;
    }

    @Override
    public @Nullable Void visitVariable(VariableTree tree, String outer) {
      keep(outer + tree.getName());
      return null;
    }

    private void keep(String key) {
      var comment = trees.getDocComment(getCurrentPath());
      if (comment != null) {
        found.put(key, comment);
      }
    }

    private void keepFirst(String key) {
      var comment = trees.getDocComment(getCurrentPath());
      if (comment != null) {
        found.putIfAbsent(key, comment);
      }
    }
  }
}
