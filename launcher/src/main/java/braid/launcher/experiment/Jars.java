package braid.launcher.experiment;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;

/// Jars of a class path with their digests. CRC-32 finds a changed jar in a fortieth of the time of
/// a SHA, and there is no attacker to defend against.
final class Jars {
  private static final int BUFFER_BYTES = 1 << 16;

  private Jars() {}

  static JsonArray of(String... entries) {
    var list = new JsonArray();
    for (var entry : entries) {
      if (!entry.isEmpty()) {
        list.add(one(Path.of(entry)));
      }
    }
    return list;
  }

  static JsonObject one(Path entry) {
    var json = new JsonObject();
    json.addProperty("path", entry.toString());
    if (!Files.isRegularFile(entry)) {
      json.addProperty("kind", Files.isDirectory(entry) ? "folder" : "missing");
      return json;
    }
    try {
      json.addProperty("bytes", Files.size(entry));
      json.addProperty("crc32", digest(entry));
    } catch (IOException e) {
      json.addProperty("kind", "unreadable: " + e);
    }
    return json;
  }

  private static String digest(Path file) throws IOException {
    var digest = new CRC32();
    var buffer = new byte[BUFFER_BYTES];
    try (var in = Files.newInputStream(file)) {
      for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
        digest.update(buffer, 0, read);
      }
    }
    return "%08x".formatted(digest.getValue());
  }
}
