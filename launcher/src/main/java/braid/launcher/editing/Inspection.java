package braid.launcher.editing;

import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.Origins;
import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jshell.Snippet;
import jdk.jshell.SourceCodeAnalysis.Documentation;

/// Description of the name at the cursor: its signature, the cell that declared it, and its
/// comment.
final class Inspection {

  private static final ApiDocs API = new ApiDocs();

  private record Element(Signature signature, Optional<DocComment> comment, String place) {}

  private final CellCompiler compiler;
  private final Origins origins;

  Inspection(CellCompiler compiler, Origins origins) {
    this.compiler = compiler;
    this.origins = origins;
  }

  /// @param detailed true to show all comments in full even if several elements match
  Optional<MimeBundle> at(String source, int cursor, boolean detailed) {
    int at = cursor;
    while (at < source.length() && Character.isJavaIdentifierPart(source.charAt(at))) {
      at++;
    }
    var cell = CellText.of(source, at, compiler.analysis());
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
    var raw =
        documentation.javadoc() == null && place.isEmpty()
            ? API.of(signature)
            : Optional.ofNullable(documentation.javadoc());
    return new Element(signature, raw.map(DocComment::of), place);
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
    boolean full = detailed || found.size() == 1;
    var plain =
        found.stream()
            .map(element -> plain(element, full))
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
        element.signature().shown(), element.place(), comment.orElse("").indent(4).stripTrailing());
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
