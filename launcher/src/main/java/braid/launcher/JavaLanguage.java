package braid.launcher;

import com.google.gson.JsonObject;
import java.util.List;

/// Description of the language for Jupyter, in replies of the kernel and in saved notebooks.
public final class JavaLanguage {
  private static final String MIME = "text/x-java";

  /// Keywords that CodeMirror 5, of the classic notebook, does not know: its Java is version 8.
  private static final List<String> NEW_KEYWORDS =
      List.of("var", "record", "sealed", "permits", "yield", "when");

  private JavaLanguage() {}

  public static JsonObject json() {
    var language = new JsonObject();
    language.addProperty("name", "java");
    language.addProperty("version", System.getProperty("java.version", ""));
    language.addProperty("mimetype", MIME);
    language.addProperty("file_extension", ".java");
    language.addProperty("pygments_lexer", "java");
    language.add("codemirror_mode", mode());
    language.addProperty("nbconvert_exporter", "script");
    return language;
  }

  /// Returns the mode for both editors: JupyterLab 4 (CodeMirror 6) finds its Java grammar by
  /// `mime`; CodeMirror 5 finds its mode by `name` and colors our words beside its own.
  private static JsonObject mode() {
    var words = new JsonObject();
    NEW_KEYWORDS.forEach(word -> words.addProperty(word, true));
    var mode = new JsonObject();
    mode.addProperty("name", MIME);
    mode.addProperty("mime", MIME);
    mode.add("builtin", words);
    return mode;
  }
}
