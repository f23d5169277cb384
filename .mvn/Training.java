import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.concurrent.Executors;
import jdk.jshell.JShell;

/// Uses the parts of the JDK that fronts and ranks use, while the JVM lists the classes it loads. The processes of tests start from an archive of
/// these classes.
class Training {
  private static final List<String> SNIPPETS =
      List.of(
          "import java.util.stream.*;",
          "record Pair(int a, String b) {}",
          "var pairs = IntStream.range(0, 9).mapToObj(i -> new Pair(i, \"b\" + i)).toList();",
          "double mean(List<Pair> of) { return of.stream().mapToInt(Pair::a).average().orElseThrow(); }",
          "for (var pair : pairs) { String.format(\"%s %.1f%n\", pair, mean(pairs)); }",
          "int wrong = \"\";",
          "throw new IllegalStateException(\"trained\");");

  public static void main(String[] args) throws Throwable {
    try (var shell = JShell.builder().executionEngine("local").build()) {
      for (var snippet : SNIPPETS) {
        shell.eval(snippet).forEach(event -> shell.diagnostics(event.snippet()).toList());
      }
      shell.sourceCodeAnalysis().completionSuggestions("System.out.pri", 14, new int[1]);
    }
    var linker = Linker.nativeLinker();
    var abs = linker.downcallHandle(linker.defaultLookup().findOrThrow("labs"), FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
    try (var server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        var threads = Executors.newScheduledThreadPool(1);
        var client = new Socket(server.getInetAddress(), server.getLocalPort());
        var served = server.accept()) {
      client.getOutputStream().write((int) (long) abs.invokeExact(-1L));
      threads.submit(() -> served.getInputStream().read()).get();
    }
    ProcessHandle.current().info().totalCpuDuration();
    DateTimeFormatter.ISO_OFFSET_DATE_TIME.format(ZonedDateTime.now());
  }
}
