"""Scenarios: (family, type, label, sub, category, payload templates or a maker)."""
import importlib

SCEN = []
MODULES = ["command", "mail", "http", "files", "writefile", "memory", "schedule", "documents", "powershell", "offense"]
WEIGHTS = {"execute_command": 8000, "tools": 6500, "document": 6000, "write_file": 3600, "files": 3400, "http_request": 3000,
           "send_email": 2000, "send_message": 1300, "memory": 1500, "schedule": 1200}


def add(family, type_, label, sub, category, templates, weight=1):
    SCEN.append({"family": family, "type": type_, "label": label, "sub": sub, "category": category,
                 "templates": templates, "weight": weight})


def load():
    if not SCEN:
        for m in MODULES:
            importlib.import_module("generate.families." + m)
    return SCEN
