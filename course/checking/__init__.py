"""How an answer is judged: run it, watch it, say why it is wrong. (`utils.check` compares arrays.)"""
