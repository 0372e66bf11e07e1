-- SPDX-License-Identifier: Apache-2.0
-- A real Neovim and `einc lsp`: a file with a mistake is opened as a user opens it; diagnostics come, a fix is applied, they go; hover and
-- definition answer. Run as
--   nvim --headless -u NONE -l, or --cmd 'luafile neovim.lua' before 0.9, with $EINC the command and $EINC_EDITORS the editors' files.
local function fail(what)
  io.stderr:write(what .. "\n")
  vim.cmd("cquit 1")
end

local function run()
  vim.opt.runtimepath:prepend(vim.env.EINC_EDITORS .. "/vim")
  vim.cmd("filetype plugin on")
  local file = vim.fn.tempname() .. ".ein"
  vim.fn.writefile({
    "dim batch = 4, width = 8",
    "input x: [batch width]",
    "param w: [width] ~ ones",
    'output y = einsum(x, w, "batch width, width -> batch")',
    "output z = rleu(y)",
  }, file)
  vim.cmd("edit " .. file)
  assert(vim.bo.filetype == "ein", "the file type is " .. vim.bo.filetype)

  local config = { name = "einc", cmd = { vim.env.EINC, "lsp" }, root_dir = vim.fn.fnamemodify(file, ":h") }
  if vim.lsp.start then
    vim.lsp.start(config)
  else -- before 0.8
    vim.lsp.buf_attach_client(0, vim.lsp.start_client(config))
  end
  local function diagnostics(count)
    assert(vim.wait(10000, function() return #vim.diagnostic.get(0) == count end, 20),
      "not " .. count .. " diagnostics but " .. #vim.diagnostic.get(0))
    return vim.diagnostic.get(0)
  end
  local function ask(method, line, column, extra)
    local parameters = vim.tbl_extend("force", {
      textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column } }, extra or {})
    local answers = vim.lsp.buf_request_sync(0, method, parameters, 5000)
    for _, answer in pairs(answers or {}) do
      if answer.result then return answer.result end
    end
    error("no answer to " .. method)
  end

  local found = diagnostics(1)[1]
  assert(found.lnum == 4 and found.col == 11, "a diagnostic at " .. found.lnum .. ":" .. found.col)
  assert(found.message:find("rleu"), found.message)
  local range = { start = { line = 4, character = 11 }, ["end"] = { line = 4, character = 15 } }
  local actions = ask("textDocument/codeAction", 4, 11, { range = range, context = { diagnostics = {} } })
  local client = vim.lsp.buf_get_clients and vim.lsp.buf_get_clients(0)
  local _, first = next(client)
  vim.lsp.util.apply_workspace_edit(actions[1].edit, first.offset_encoding)
  assert(vim.fn.getline(5) == "output z = relu(y)", "the fix gave: " .. vim.fn.getline(5))
  diagnostics(0)

  local hover = ask("textDocument/hover", 3, 7)
  local text = type(hover.contents) == "table" and hover.contents.value or hover.contents
  assert(text:find("batch"), "hover says: " .. text)
  local place = ask("textDocument/definition", 3, 21)
  place = place[1] or place
  assert((place.range or place.targetRange).start.line == 2, "w is not defined in its line")
  vim.fn.delete(file)
end

local good, problem = pcall(run)
if not good then fail(tostring(problem)) end
vim.cmd("qall!")
