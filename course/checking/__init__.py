"""How an answer is judged: run, watched, told what is wrong. (`utils.check` compares arrays.)"""
