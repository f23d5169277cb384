package braid.launcher.cli.jupyter;

import braid.internal.json.RecordJson;
import braid.launcher.kernel.channels.Message;
import braid.model.BraidException;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.StreamSupport;

/// A kernelspec of Braid: the directory that tells Jupyter how to start the kernel. Braid only
/// replaces and removes its own.
public record KernelSpec(Path directory, String displayName, List<String> command) {
  static final String DEFAULT_NAME = "braid";

  private static final Gson JSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();
  private static final String FILE = "kernel.json";

  /// Key in `metadata` that identifies Braid's kernelspecs.
  private static final String MARK = "braid";

  static void requireName(String name) {
    if (!name.matches("[A-Za-z0-9._-]+")) {
      throw new BraidException(
          "--name must be letters, digits, ., _ and - but was \"%s\"; try --name %s"
              .formatted(name, DEFAULT_NAME));
    }
  }

  static Path directory(Path data, String name) {
    return data.resolve("kernels").resolve(name.toLowerCase(Locale.ROOT));
  }

  public String name() {
    return directory.getFileName().toString();
  }

  /// Reads the kernelspec of a directory; empty if there is none, or another kernel's.
  static Optional<KernelSpec> read(Path directory) throws IOException {
    var file = directory.resolve(FILE);
    if (!Files.isRegularFile(file)) {
      return Optional.empty();
    }
    try {
      if (RecordJson.parse(file.toString(), Files.readString(file)) instanceof JsonObject json
          && json.get("metadata") instanceof JsonObject metadata
          && metadata.has(MARK)
          && json.get("argv") instanceof JsonArray argv
          && json.get("display_name") instanceof JsonPrimitive displayName) {
        var command = StreamSupport.stream(argv.spliterator(), false).map(KernelSpec::word);
        return Optional.of(new KernelSpec(directory, displayName.getAsString(), command.toList()));
      }
      return Optional.empty();
    } catch (BraidException | CharacterCodingException e) {
      return Optional.empty(); // not written by Braid
    }
  }

  /// Returns a word of the command; as JSON if it is not a text, since that was changed by hand.
  private static String word(JsonElement word) {
    return word instanceof JsonPrimitive text ? text.getAsString() : word.toString();
  }

  /// Returns all kernelspecs of Braid that Jupyter can see, in its order of preference.
  public static List<KernelSpec> all(JupyterPaths paths) throws IOException {
    var found = new ArrayList<KernelSpec>();
    for (var data : paths.data()) {
      var kernels = data.resolve("kernels");
      if (Files.isDirectory(kernels)) {
        try (var directories = Files.list(kernels)) {
          for (var directory : directories.sorted().toList()) {
            read(directory).ifPresent(found::add);
          }
        }
      }
    }
    return found;
  }

  private String json() {
    var argv = new JsonArray();
    command.forEach(argv::add);
    var metadata = new JsonObject();
    var mark = new JsonObject();
    mark.addProperty("made_by", "braid kernel install");
    metadata.add(MARK, mark);
    var encryption = new JsonArray();
    encryption.add("curve");
    metadata.add("supported_encryption", encryption);
    var json = new JsonObject();
    json.add("argv", argv);
    json.addProperty("display_name", displayName);
    json.addProperty("language", "java");
    json.addProperty("interrupt_mode", "message");
    json.addProperty("kernel_protocol_version", Message.PROTOCOL_VERSION);
    json.add("metadata", metadata);
    return JSON.toJson(json) + "\n";
  }

  /// Writes the directory atomically, replacing an older one.
  void write() throws IOException {
    if (Files.exists(directory) && read(directory).isEmpty()) {
      throw new BraidException(
          "%s must be free or Braid's own but holds another kernel; choose another --name"
              .formatted(directory));
    }
    var kernels = Files.createDirectories(directory.toAbsolutePath().getParent());
    var temporary = kernels.resolve("." + name() + "." + ProcessHandle.current().pid());
    try {
      Files.createDirectory(temporary);
      Files.writeString(temporary.resolve(FILE), json());
      for (int pixels : Logo.SIZES_PIXELS) {
        Files.write(
            temporary.resolve("logo-%dx%d.png".formatted(pixels, pixels)), Logo.png(pixels));
      }
      delete(directory);
      Files.move(temporary, directory);
    } finally {
      delete(temporary);
    }
  }

  void remove() throws IOException {
    delete(directory);
  }

  /// Deletes a kernelspec, which holds files and no directories. Of a link only the link is
  /// deleted.
  private static void delete(Path directory) throws IOException {
    if (Files.isSymbolicLink(directory)) {
      Files.delete(directory);
    } else if (Files.isDirectory(directory)) {
      try (var files = Files.list(directory)) {
        for (var file : files.toList()) {
          Files.delete(file);
        }
      }
      Files.delete(directory);
    }
  }
}
