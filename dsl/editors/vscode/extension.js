// Starts `einc lsp` for .ein files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("einc").get("path");
  client = new LanguageClient("einc", { command, args: ["lsp"] }, { documentSelector: [{ language: "ein" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
