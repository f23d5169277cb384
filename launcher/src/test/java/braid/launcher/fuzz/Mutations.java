package braid.launcher.fuzz;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// Corrupts texts at random but reproducibly per seed.
public final class Mutations {
  /// Seed of a failure to repeat: -Dbraid.seed=…
  public static final long SEED = Long.getLong("braid.seed", 20251121L);

  private static final int MOST_CHANGES = 4;
  private static final int DEPTH = 20_000;

  /// Values that often break programs.
  private static final List<String> NASTY =
      List.of(
          "",
          "\0",
          "\n",
          "\r",
          "\t",
          "\ufeff",
          "\ud83e",
          "🧶",
          "\"",
          "'",
          "\\",
          "\\u12",
          "{",
          "}",
          "[",
          "]",
          ":",
          ": ",
          ",",
          "-",
          "- ",
          "---",
          "...",
          "&a ",
          "*a",
          "&a [*a]",
          "!!int ",
          "!!x ",
          "!!java.net.URL [x]",
          "<<: ",
          "? ",
          "| ",
          "> ",
          "%",
          "@",
          "`",
          "#",
          "null",
          "~",
          "true",
          "NaN",
          ".inf",
          "-0",
          "1e999",
          "-1e-999",
          "4.5",
          "0x1F",
          "1_000",
          "9".repeat(400),
          "2001-01-01",
          "12:30:45",
          "/*",
          "*/",
          "//",
          "\"\"\"",
          ";",
          "<>",
          "(",
          ")");

  private static final List<String> NASTY_JSON =
      List.of(
          "null",
          "true",
          "-1",
          "0",
          "4.5",
          "1e999",
          "-1e-400",
          "9".repeat(400),
          "\"\"",
          "\"4\"",
          "\"\\ud83e\"",
          "\"\\u0000\"",
          "[]",
          "{}",
          "[null]",
          "[[[]]]",
          "{\"\": {}}",
          "[1, \"a\"]",
          "1e2147483647");

  private final Random random;

  public Mutations(long seed) {
    random = new Random(seed);
  }

  public <T> T one(List<T> values) {
    return values.get(random.nextInt(values.size()));
  }

  /// Returns the text with some of its parts cut, doubled, swapped or replaced.
  public String text(String original) {
    var text = new StringBuilder(original);
    for (int i = random.nextInt(MOST_CHANGES); i >= 0; i--) {
      int from = random.nextInt(text.length() + 1);
      int to = Math.min(text.length(), from + random.nextInt(12));
      switch (random.nextInt(6)) {
        case 0 -> text.delete(from, to);
        case 1 -> text.insert(from, one(NASTY));
        case 2 -> text.replace(from, to, one(NASTY));
        case 3 -> text.insert(random.nextInt(text.length() + 1), text.substring(from, to));
        case 4 -> text.setLength(from);
        default -> text.insert(from, (char) random.nextInt(0x250));
      }
    }
    return random.nextInt(200) == 0
        ? one(List.of("[", "{\"a\":", "&a [")).repeat(DEPTH)
        : text.toString();
  }

  /// Returns valid JSON with some of its values replaced.
  public String json(String original) {
    var document = JsonParser.parseString(original);
    for (int i = random.nextInt(MOST_CHANGES); i >= 0; i--) {
      var places = new ArrayList<Runnable>();
      collect(document, places);
      if (!places.isEmpty()) {
        one(places).run();
      }
    }
    return document.toString();
  }

  private void collect(JsonElement element, List<Runnable> places) {
    if (element instanceof JsonObject object) {
      for (var name : object.keySet()) {
        places.add(() -> object.add(name, nasty()));
        places.add(() -> object.remove(name));
        collect(object.get(name), places);
      }
    } else if (element instanceof JsonArray array) {
      for (int i = 0; i < array.size(); i++) {
        int index = i;
        places.add(() -> array.set(index, nasty()));
        collect(array.get(i), places);
      }
      places.add(() -> array.add(nasty()));
    }
  }

  private JsonElement nasty() {
    return JsonParser.parseString(one(NASTY_JSON));
  }

  public List<byte[]> frames(List<byte[]> original) {
    var frames = new ArrayList<>(original);
    for (int i = random.nextInt(MOST_CHANGES); i >= 0 && !frames.isEmpty(); i--) {
      int index = random.nextInt(frames.size());
      switch (random.nextInt(5)) {
        case 0 -> frames.remove(index);
        case 1 -> frames.add(index, frames.get(random.nextInt(frames.size())));
        case 2 -> frames.add(index, new byte[0]);
        default -> frames.set(index, bytes(frames.get(index)));
      }
    }
    return frames;
  }

  private byte[] bytes(byte[] original) {
    var bytes = original.clone();
    for (int i = 0; i < bytes.length && i < MOST_CHANGES; i++) {
      bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
    }
    return bytes;
  }
}
