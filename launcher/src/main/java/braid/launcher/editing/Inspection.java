package braid.launcher.editing;

import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.Origins;
import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jshell.Snippet;
import jdk.jshell.SourceCodeAnalysis.Documentation;

/// Description of the name at the cursor: its signature, the cell that declared it, and its
/// comment.
final class Inspection {

  private static final ApiDocs API = new ApiDocs();

  /// Columns of a line of plain text: pages show it without breaking at words.
  private static final int COLUMNS = 76;

  private static final int COMMENT_INDENT = 4;

  /// Indent from which on a line of a comment is code.
  private static final int CODE_INDENT = 8;

  /// @param isBrief true if the comment is that of a variable's type, which may be long
  private record Element(
      Signature signature, Optional<DocComment> comment, String place, boolean isBrief) {}

  private final CellCompiler compiler;
  private final Origins origins;

  Inspection(CellCompiler compiler, Origins origins) {
    this.compiler = compiler;
    this.origins = origins;
  }

  /// @param detailed true to show all comments in full even if several elements match
  Optional<MimeBundle> at(String source, int cursor, boolean detailed) {
    int start = cursor;
    while (start < source.length() && Character.isJavaIdentifierPart(source.charAt(start))) {
      start++;
    }
    var cell = CellText.of(source, start, compiler.analysis());
    var found = new ArrayList<Element>();
    var texts =
        cell.before().isEmpty() ? List.of(cell.current()) : List.of(cell.joined(), cell.current());
    for (var text : texts) {
      if (found.isEmpty()) {
        documentation(text).stream().map(this::found).forEach(found::add);
      }
    }
    return found.isEmpty() ? Optional.empty() : Optional.of(shown(found, detailed));
  }

  /// Returns the documentation of what precedes the end of the code. JShell finds a class's at the
  /// end of its name but a method's only inside its bracket, so the second attempt opens one.
  private List<Documentation> documentation(String code) {
    var docs = compiler.analysis().documentation(code, code.length(), true);
    return docs.isEmpty()
        ? compiler.analysis().documentation(code + "(", code.length() + 1, true)
        : docs;
  }

  private Element found(Documentation documentation) {
    var signature = new Signature(documentation.signature());
    var place = place(signature.name());
    var own =
        documentation.javadoc() == null && place.isEmpty()
            ? API.of(signature)
            : Optional.ofNullable(documentation.javadoc());
    var type = own.isPresent() ? Optional.<String>empty() : signature.type();
    var ofApi = type.flatMap(name -> API.of(new Signature(name)));
    var comment = own.or(() -> ofApi).or(() -> type.flatMap(this::ofType));
    return new Element(
        signature, comment.map(DocComment::of), place, type.isPresent() && ofApi.isEmpty());
  }

  /// Returns the comment of a type of the JDK.
  private Optional<String> ofType(String name) {
    return compiler.analysis().documentation(name, name.length(), true).stream()
        .map(Documentation::javadoc)
        .filter(Objects::nonNull)
        .findFirst();
  }

  /// Returns the cell that declared the name, if any.
  private String place(String name) {
    var shell = compiler.shell();
    return Stream.of(
            shell.variables().filter(v -> v.name().equals(name)),
            shell.methods().filter(m -> m.name().equals(name)),
            shell.types().filter(t -> t.name().equals(name)))
        .flatMap(all -> all)
        .map(Snippet::id)
        .flatMap(id -> origins.ofSnippet(id).stream())
        .map(origin -> "declared in " + origin.place(1))
        .findFirst()
        .orElse("");
  }

  private static MimeBundle shown(List<Element> found, boolean detailed) {
    boolean full = detailed || (found.size() == 1 && !found.getFirst().isBrief());
    var plain =
        found.stream()
            .map(element -> wrapped(plain(element, full)))
            .distinct()
            .collect(Collectors.joining("\n\n"));
    var markdown =
        found.stream()
            .map(element -> markdown(element, full))
            .distinct()
            .collect(Collectors.joining("\n\n"));
    return MimeBundle.text(plain).with(MimeBundle.MARKDOWN, markdown);
  }

  private static String plain(Element element, boolean full) {
    var comment = element.comment().map(c -> full ? c.plain() : c.firstSentence().replace("`", ""));
    return lines(
        element.signature().shown(),
        element.place(),
        comment.orElse("").indent(COMMENT_INDENT).stripTrailing());
  }

  /// Breaks long lines between words, except code. A signature and a parameter go on indented.
  private static String wrapped(String text) {
    var lines = new ArrayList<String>();
    for (var line : text.lines().toList()) {
      int indent = line.length() - line.stripLeading().length();
      boolean isProse = indent == COMMENT_INDENT && !line.startsWith("- ", indent);
      var hang = " ".repeat(indent == 0 ? COMMENT_INDENT : isProse ? indent : indent + 2);
      var rest = line;
      int end = rest.lastIndexOf(' ', COLUMNS);
      while (indent < CODE_INDENT && rest.length() > COLUMNS && end > hang.length()) {
        lines.add(rest.substring(0, end));
        rest = hang + rest.substring(end + 1);
        end = rest.lastIndexOf(' ', COLUMNS);
      }
      lines.add(rest.stripTrailing());
    }
    return String.join("\n", lines);
  }

  private static String markdown(Element element, boolean full) {
    var comment = element.comment().map(c -> full ? c.markdown() : c.firstSentence());
    var code = "```java\n" + element.signature().shown() + "\n```";
    return lines(code, element.place(), comment.map(text -> "\n" + text).orElse(""));
  }

  private static String lines(String... parts) {
    return Stream.of(parts).filter(part -> !part.isEmpty()).collect(Collectors.joining("\n"));
  }
}
