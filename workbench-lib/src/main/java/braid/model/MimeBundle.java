package braid.model;

import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/// One value to show in all its forms: MIME type to content. Binary content is base64, JSON content
/// is JSON text, and `text/plain` always exists, so that a terminal can show it too.
public record MimeBundle(Map<String, String> data) {
  public static final String TEXT = "text/plain";
  public static final String HTML = "text/html";
  public static final String MARKDOWN = "text/markdown";
  public static final String SVG = "image/svg+xml";
  public static final String PNG = "image/png";

  /// Marks a display of progress, whose content is an empty JSON object. `braid run --check`
  /// ignores such displays, since they depend on how long the work takes.
  public static final String PROGRESS = "application/vnd.braid.progress+json";

  public MimeBundle {
    data = Collections.unmodifiableMap(new LinkedHashMap<>(data));
    if (!data.containsKey(TEXT)) {
      throw new IllegalArgumentException("a bundle needs text/plain but has only " + data.keySet());
    }
  }

  public static MimeBundle text(String plain) {
    return new MimeBundle(Map.of(TEXT, plain));
  }

  /// Returns the bundle marked as a display of progress.
  public MimeBundle asProgress() {
    return with(PROGRESS, "{}");
  }

  public MimeBundle with(String mimeType, String content) {
    var more = new LinkedHashMap<>(data);
    more.put(mimeType, content);
    return new MimeBundle(more);
  }

  public MimeBundle with(String mimeType, byte[] content) {
    return with(mimeType, Base64.getEncoder().encodeToString(content));
  }

  public String text() {
    return data.getOrDefault(TEXT, "");
  }
}
