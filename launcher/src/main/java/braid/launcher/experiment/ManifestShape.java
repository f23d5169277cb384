package braid.launcher.experiment;

import braid.model.BraidException;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Checks the fields that readers of a manifest need. A file that was changed by hand is refused
/// with the name of the field.
final class ManifestShape {
  private final Path file;

  private ManifestShape(Path file) {
    this.file = file;
  }

  /// @throws BraidException if a field is missing or has another type
  static void check(JsonObject json, Path file) {
    new ManifestShape(file).check(json);
  }

  private void check(JsonObject json) {
    text(json, "", "id");
    text(json, "", "state");
    require("started", json.get("started"), "a time", ManifestShape::isTime);
    if (json.get("process") instanceof JsonObject process) {
      require("process.pid", process.get("pid"), "a whole number", ManifestShape::isWhole);
    }
    require("data", json.get("data"), "a list", JsonArray.class::isInstance);
    objects("data", json.getAsJsonArray("data"), (place, entry) -> text(entry, place, "id"));
    if (json.has("parameters")) {
      require("parameters", json.get("parameters"), "an object", JsonObject.class::isInstance);
      for (Map.Entry<String, JsonElement> each : json.getAsJsonObject("parameters").entrySet()) {
        var place = "parameters." + each.getKey();
        require(place, each.getValue(), "an object", JsonObject.class::isInstance);
        text(each.getValue().getAsJsonObject(), place + ".", "value");
      }
    }
    if (json.has("jars")) {
      require("jars", json.get("jars"), "a list", JsonArray.class::isInstance);
      objects("jars", json.getAsJsonArray("jars"), this::jar);
    }
  }

  private void jar(String place, JsonObject jar) {
    text(jar, place, "path");
    if (jar.has("crc32")) {
      text(jar, place, "crc32");
      text(jar, place, "bytes");
    }
  }

  private interface ElementCheck {
    void check(String place, JsonObject entry);
  }

  private void objects(String name, JsonArray list, ElementCheck each) {
    for (int i = 0; i < list.size(); i++) {
      var place = name + "[" + i + "]";
      require(place, list.get(i), "an object", JsonObject.class::isInstance);
      each.check(place + ".", list.get(i).getAsJsonObject());
    }
  }

  private void text(JsonObject object, String place, String name) {
    require(place + name, object.get(name), "a value", JsonPrimitive.class::isInstance);
  }

  private void require(
      String name, @Nullable JsonElement found, String requirement, Predicate<JsonElement> rule) {
    if (found == null || !rule.test(found)) {
      throw new BraidException(
          "%s must have %s in %s but %s; it was changed by hand: restore it, or leave the run out"
              .formatted(
                  file, requirement, name, found == null ? "has none" : "that is " + shown(found)));
    }
  }

  private static String shown(JsonElement found) {
    return switch (found) {
      case JsonObject _ -> "an object";
      case JsonArray _ -> "a list";
      default -> found.toString();
    };
  }

  private static boolean isTime(JsonElement found) {
    try {
      return found instanceof JsonPrimitive text && Instant.parse(text.getAsString()) != null;
    } catch (DateTimeException e) {
      return false;
    }
  }

  private static boolean isWhole(JsonElement found) {
    return found instanceof JsonPrimitive number && number.getAsString().matches("[0-9]{1,18}");
  }
}
