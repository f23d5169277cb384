package braid.launcher.notebook;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.notebook.Notebooks.Code;
import braid.launcher.notebook.parameters.Parameters;
import com.google.gson.JsonParser;
import org.junit.jupiter.api.Test;

class ParameterCellTest {
  private static Parameters given(String... assignments) {
    var given = Parameters.given();
    for (var assignment : assignments) {
      given.typed(assignment);
    }
    return given.build();
  }

  @Test
  void parametersComeAfterTheCellThatDeclaresThem() {
    var notebook =
        Notebooks.of(new Code("import x;"), new Code("int m = 1;", "parameters"), new Code("m"));
    assertThat(ParameterCell.inject(given("m=2"), notebook)).isEmpty();
    assertThat(notebook.cells()).hasSize(4);
    var injected = notebook.cells().get(2);
    assertThat(injected.source()).isEqualTo("// Parameters\nint m = 2;");
    assertThat(injected.hasTag("injected-parameters")).isTrue();
    assertThat(Notebook.parse(notebook.toJson(), "again").cells()).hasSize(4);
  }

  @Test
  void replacesAnEarlierOne() {
    var notebook = Notebooks.of(new Code("int m = 1;", "parameters"), new Code("m"));
    ParameterCell.inject(given("m=2"), notebook);
    ParameterCell.inject(given("m=3"), notebook);
    assertThat(notebook.cells()).hasSize(3);
    assertThat(notebook.cells().get(1).source()).isEqualTo("// Parameters\nint m = 3;");
  }

  @Test
  void isAtTheTopWhereNoCellDeclares() {
    var notebook = Notebooks.of(new Code("m"));
    assertThat(ParameterCell.inject(given("m=2", "name=x"), notebook))
        .contains(
            "test.ipynb has no cell tagged parameters, so m, name was declared at its top; tag the"
                + " declaring cell to have it checked");
    assertThat(notebook.cells().getFirst().source())
        .isEqualTo("// Parameters\nvar m = 2;\nvar name = \"x\";");
  }

  @Test
  void changesNothingWhereNothingIsGiven() {
    var notebook = Notebooks.of(new Code("int m = 1;", "parameters"));
    var before = notebook.toJson();
    assertThat(ParameterCell.inject(given(), notebook)).isEmpty();
    assertThat(notebook.toJson()).isEqualTo(before);
  }

  @Test
  void theMetadataHasTheValues() {
    var notebook =
        Notebooks.of(
            new Code(
                "int[] a = {}; double d = 0; String s = \"\"; boolean b = false; Integer n = 1;",
                "parameters"));
    ParameterCell.inject(given("a=1,2", "d=.nan", "s=[x", "b=true", "n=null"), notebook);
    assertThat(notebook.metadata().getAsJsonObject("papermill").get("parameters"))
        .isEqualTo(
            JsonParser.parseString(
                "{\"a\": [1, 2], \"d\": \"NaN\", \"s\": \"[x\", \"b\": true, \"n\": null}"));
  }

  @Test
  void theCellHasAnIdOfItsOwnIfCellsHaveIds() {
    var notebook =
        Notebook.parse(
            """
            {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
              {"cell_type": "markdown", "id": "injected-parameters", "metadata": {}, "source": ""}]}
            """,
            "n.ipynb");
    ParameterCell.inject(given("m=2"), notebook);
    assertThat(notebook.cells().getFirst().id()).contains("injected-parameters-2");
  }
}
