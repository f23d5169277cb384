import com.google.googlejavaformat.java.Formatter;
import com.google.googlejavaformat.java.FormatterException;
import com.google.googlejavaformat.java.ImportOrderer;
import com.google.googlejavaformat.java.JavaFormatterOptions;
import com.google.googlejavaformat.java.RemoveUnusedImports;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

/// `Format check ROOT` names every Java file that is not in google-java-format and fails; `Format apply ROOT`
/// rewrites them.
class Format {
  public static void main(String[] args) throws IOException {
    boolean apply = args[0].equals("apply");
    var root = Path.of(args[1]);
    List<Path> sources;
    try (var walk = Files.walk(root)) {
      sources = walk.filter(p -> p.toString().endsWith(".java") && p.toString().contains("/src/")).toList();
    }
    var unformatted = new ConcurrentLinkedQueue<Path>();
    sources.parallelStream().forEach(file -> {
      try {
        var before = Files.readString(file);
        var formatter = new Formatter(JavaFormatterOptions.defaultOptions());
        var after = formatter.formatSource(
            ImportOrderer.reorderImports(RemoveUnusedImports.removeUnusedImports(before), JavaFormatterOptions.Style.GOOGLE));
        if (!after.equals(before)) {
          if (apply) {
            Files.writeString(file, after);
          }
          unformatted.add(root.relativize(file));
        }
      } catch (IOException | FormatterException e) {
        throw new IllegalStateException(root.relativize(file) + ": " + e.getMessage(), e);
      }
    });
    if (apply) {
      System.out.println("formatted " + unformatted.size() + " of " + sources.size() + " files");
    } else if (!unformatted.isEmpty()) {
      unformatted.stream().sorted().forEach(f -> System.err.println("not formatted: " + f));
      System.err.println("run: mvn -N -Dformat.mode=apply process-sources");
      System.exit(1);
    }
  }
}
